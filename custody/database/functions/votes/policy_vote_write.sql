-- Promises: Keeps a vote on looser policies that has too few yet, if nothing of the agent has changed. stale: nothing
--   was written, read again.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION policy_vote_write(p_tenant text, p_credential credential, p_act act, p_agent text, p_incarnation uuid,
                                  p_ledger_version bigint, p_version bigint, p_vote vote) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The agent's row first, as for a signature: of two last votes the second reads again, and counts both.
  UPDATE agents SET ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = p_incarnation
     AND ledger_version = p_ledger_version AND policy_version = p_version;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  IF NOT put_vote(p_tenant, p_vote) THEN RETURN 'stale'; END IF;
  PERFORM finish_act(p_tenant, p_act, 'approval.voted', 'agent', p_agent);
  RETURN 'done';
END $$;
