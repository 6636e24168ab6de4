-- Promises: Rejects an order that its agent takes back while it waits. unclaimed: it was decided first, or its time is
--   up; stale: the agent is gone, or its token counts no more.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION withdraw_write(p_tenant text, p_incarnation uuid, p_epoch integer, p_act act, p_agent text,
                               p_approval uuid, p_resolved_at timestamptz, p_events text)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_tx uuid;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The anchor first: withdraw, approve, deny and expiry of one item queue up here, and a later one finds it resolved.
  UPDATE agents SET ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = p_incarnation AND token_epoch = p_epoch;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  UPDATE approvals SET status = 'rejected', resolved_at = p_resolved_at, resolved_by = 'agent'
   WHERE tenant_id = p_tenant AND id = p_approval AND agent_id = p_agent AND status = 'pending'
     AND (expires_at IS NULL OR expires_at > p_resolved_at) RETURNING tx_id INTO v_tx;
  IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
  UPDATE transactions SET status = 'rejected', status_detail = 'withdrawn'
   WHERE tenant_id = p_tenant AND id = v_tx AND status = 'pending_approval';
  IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_approval; END IF;
  PERFORM finish_act(p_tenant, p_act, 'tx.withdrawn', 'transaction', v_tx::text);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;
