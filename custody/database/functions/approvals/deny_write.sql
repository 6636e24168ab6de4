-- Promises: Rejects a pending approval and its order. unclaimed: it was resolved first, or is over; stale: the agent is
--   gone.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION deny_write(p_tenant text, p_credential credential, p_act act, p_agent text, p_approval uuid,
                           p_digest bytea, p_reason text, p_user text, p_resolved_at timestamptz, p_events text)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_tx uuid;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The anchor first: deny and approve of one item queue up here, and the second one finds it resolved.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  UPDATE approvals SET status = 'rejected', resolved_at = p_resolved_at, resolved_by = 'manual',
         resolved_by_user_id = p_user, reason = p_reason
   WHERE tenant_id = p_tenant AND id = p_approval AND status = 'pending' AND digest = p_digest
     AND (expires_at IS NULL OR expires_at > p_resolved_at) RETURNING tx_id INTO v_tx;
  IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
  UPDATE transactions SET status = 'rejected', status_detail = 'denied', reason = p_reason
   WHERE tenant_id = p_tenant AND id = v_tx AND status = 'pending_approval';
  IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_approval; END IF;
  PERFORM finish_act(p_tenant, p_act, 'tx.denied', 'transaction', v_tx::text);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;
