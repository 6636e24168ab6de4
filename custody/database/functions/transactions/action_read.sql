-- Promises: The wallet action that has a reference: the digest of its order, and its answer. One that a rate limit
--   refused has none. The conditions are those of the unique indexes transactions_action_reference and
--   intents_action_reference: a batch of calls is an intent, or a transaction if it was refused.
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
     AND t.reference_id = p_reference
  UNION ALL
  SELECT i.digest, i.answer FROM intents i
   WHERE p_type = 'send_calls' AND i.tenant_id = p_tenant AND i.agent_id = p_agent AND i.answer IS NOT NULL
     AND i.reference_id = p_reference;
END $$;
