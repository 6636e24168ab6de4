-- Promises: The wallet action that has a reference: the digest of its order, and its answer. One that a rate limit
--   refused has none. The conditions are those of the unique index transactions_action_reference.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION action_read(p_tenant text, p_agent text, p_type text, p_reference text)
RETURNS TABLE (digest bytea, answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  SELECT t.digest, t.answer FROM transactions t
   WHERE t.tenant_id = p_tenant AND t.agent_id = p_agent AND t.wallet_action IS NOT NULL
     AND (t.wallet_action::json->>'throttled') IS NULL AND (t.wallet_action::json->>'type') = p_type
     AND t.reference_id = p_reference;
END $$;
