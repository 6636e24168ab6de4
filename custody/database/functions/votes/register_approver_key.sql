-- Promises: Keeps a person's approver key. full: they have as many living ones as one may have; taken: the tenant has
--   this key already; revoked: it had it, and a revoked key stays so.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION register_approver_key(p_tenant text, p_key approver_key, p_most integer) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF (SELECT count(*) FROM approver_keys WHERE tenant_id = p_tenant AND user_id = p_key.user_id
         AND revoked_at IS NULL) >= p_most THEN
    RETURN 'full';
  END IF;
  IF EXISTS (SELECT FROM approver_keys WHERE tenant_id = p_tenant AND fingerprint = p_key.fingerprint
                AND revoked_at IS NOT NULL) THEN
    RETURN 'revoked';
  END IF;
  INSERT INTO approver_keys (tenant_id, id, user_id, name, rp_id, credential_id, public_key, fingerprint, mac,
                             created_at)
  VALUES (p_tenant, p_key.id, p_key.user_id, p_key.name, p_key.rp_id, p_key.credential_id, p_key.public_key,
          p_key.fingerprint, p_key.mac, p_key.created_at)
  ON CONFLICT (tenant_id, fingerprint) WHERE revoked_at IS NULL DO NOTHING;
  RETURN CASE WHEN FOUND THEN 'done' ELSE 'taken' END;
END $$;
