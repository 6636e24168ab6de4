-- Promises: Ends an approval whose time is up on the clock of the database; nobody's word is taken for it. unchanged:
--   it is resolved, not due, or not there.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION expire_write(p_tenant text, p_act act, p_agent text, p_approval uuid, p_events text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz; v_tx uuid;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The anchor first, as approve and deny do: the three queue up here, and a later one finds the item resolved.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  v_now := service_now();
  UPDATE approvals SET status = 'expired', resolved_at = v_now, resolved_by = 'system'
   WHERE tenant_id = p_tenant AND id = p_approval AND agent_id = p_agent AND status = 'pending' AND expires_at <= v_now
  RETURNING tx_id INTO v_tx;
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  UPDATE transactions SET status = 'rejected', status_detail = 'approval_expired'
   WHERE tenant_id = p_tenant AND id = v_tx AND status = 'pending_approval';
  IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_approval; END IF;
  PERFORM finish_act(p_tenant, p_act, 'tx.expired', 'transaction', v_tx::text);
  PERFORM emit(p_agent, p_events);
  RETURN 'expired';
END $$;
