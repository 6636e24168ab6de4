-- Promises: Ends an act of the api on an account, in the tenant that the transaction is in: its answer is kept under
--   its idempotency key, and its audit row is written. It takes no other action and no other route's key. Raises CU001
--   where another request took the key meanwhile: nothing of the act stays.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION finish_account_act(p_act act, p_action text, p_resource_id text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v_tenant text := current_setting('custody.tenant');
BEGIN
  IF p_action IS NULL OR p_action !~ '^(account|aggregation)\.(created|changed|deleted)$' THEN
    RAISE EXCEPTION 'not an act of the api: %', left(p_action, 64);
  END IF;
  -- Of an agent's request it can neither give an answer nor take one away, so no order is signed twice by its doing.
  IF p_act.key_hash IS NOT NULL AND (
       p_act.route IS NULL OR p_act.route !~ '^(POST|PATCH|DELETE) (/v1)?/accounts(/|$)' OR p_act.answer IS NULL
       OR p_act.principal IS NULL OR p_act.principal LIKE 'agent:%' OR length(p_act.answer) > 131072
       OR GREATEST(length(p_act.route), length(p_act.principal), length(p_act.key_hash)) > 256
       OR length(p_act.fingerprint) > 64 OR NOT EXISTS (SELECT FROM tenants WHERE id = v_tenant)) THEN
    RAISE EXCEPTION 'not a key of an act of the api';
  END IF;
  PERFORM finish_act(v_tenant, p_act, p_action, split_part(p_action, '.', 1), p_resource_id);
END $$;
