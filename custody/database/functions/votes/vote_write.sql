-- Promises: Keeps a vote on an approval that has too few yet, if nothing that it was judged on has changed. stale:
--   nothing was written, read again; unclaimed: the approval is gone.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION vote_write(p_tenant text, p_agent text, g sign_guard, p_credential credential, p_act act, p_tx uuid,
                           p_digest bytea, p_vote vote, p_events text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The agent's row first, as for a signature: of two last votes the second reads again, and counts both.
  UPDATE agents SET ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = g.incarnation AND ledger_version = g.ledger_version
     AND policy_version = g.policy_version AND frozen_at IS NULL;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  PERFORM FROM approvals WHERE tenant_id = p_tenant AND id = g.claim AND tx_id = p_tx AND status = 'pending'
    AND digest = p_digest AND (expires_at IS NULL OR expires_at > service_now());
  IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
  IF NOT put_vote(p_tenant, p_vote) THEN RETURN 'stale'; END IF;
  PERFORM finish_act(p_tenant, p_act, 'approval.voted', 'approval', g.claim::text);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;
