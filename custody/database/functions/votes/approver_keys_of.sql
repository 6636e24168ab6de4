-- Promises: Whose living keys these are, of people who are members of the tenant.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION approver_keys_of(p_tenant text, p_fingerprints text[]) RETURNS TABLE (user_id uuid, fingerprint text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT k.user_id, k.fingerprint FROM approver_keys k
    JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = k.user_id
   WHERE k.tenant_id = p_tenant AND k.fingerprint = ANY (p_fingerprints) AND k.revoked_at IS NULL;
END $$;
