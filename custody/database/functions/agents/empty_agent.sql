-- Promises: Deletes up to p_limit orders of an agent that will be deleted, the oldest first; freezes it before.
--   False: the rest may go with the agent at once.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION empty_agent(p_tenant text, p_credential credential, p_act act, p_agent text, p_reason text,
                            p_limit integer, p_events text) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM FROM agents WHERE tenant_id = p_tenant AND id = p_agent FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  IF (SELECT count(*) FROM (SELECT FROM transactions WHERE tenant_id = p_tenant AND agent_id = p_agent
                             LIMIT p_limit + 1) t) <= p_limit THEN
    RETURN false;
  END IF;
  -- Frozen from the first part on: nothing is signed by a wallet whose orders are going.
  UPDATE agents SET frozen_at = service_now(), frozen_reason = p_reason, ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND frozen_at IS NULL;
  IF FOUND THEN
    PERFORM finish_act(p_tenant, p_act, 'agent.frozen', 'agent', p_agent);
    PERFORM emit(p_agent, p_events);
  END IF;
  DELETE FROM transactions WHERE tenant_id = p_tenant AND id = ANY (ARRAY(
    SELECT id FROM transactions WHERE tenant_id = p_tenant AND agent_id = p_agent ORDER BY created_at LIMIT p_limit));
  RETURN true;
END $$;
