-- Promises: Writes what a node said of a transaction, with its events. Nothing of it frees spend; a final state is
--   never left. unchanged: there was nothing to write, and no event is emitted.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION outcome_write(p_tenant text, p_tx uuid, p_outcome text, p_look_seconds integer, p_origin text[],
                              p_evidence text DEFAULT '{}', p_events text DEFAULT '[]',
                              p_fee_paid text DEFAULT NULL, p_settled_by text DEFAULT NULL,
                              p_breaker breaker DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE t transactions; v_status text;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  IF p_outcome = 'sent' THEN
    UPDATE transactions SET status = 'broadcast', broadcast_at = service_now(), resend_at = NULL,
           look_at = service_now() + make_interval(secs => p_look_seconds)
     WHERE tenant_id = p_tenant AND id = p_tx AND status = 'signed' AND broadcast;
    IF NOT FOUND THEN RETURN 'unchanged'; END IF;
    PERFORM audit_append('system', 'node', 'tx.broadcast', 'transaction', p_tx::text, p_evidence, p_origin);
    RETURN 'done';
  END IF;
  IF p_outcome NOT IN ('confirmed', 'reverted', 'replaced', 'expired', 'lapsed', 'canceled') THEN
    RAISE EXCEPTION 'unknown outcome %', p_outcome;
  END IF;
  SELECT * INTO t FROM transactions WHERE tenant_id = p_tenant AND id = p_tx;
  IF NOT FOUND OR t.status NOT IN ('signed', 'broadcast') THEN RETURN 'unchanged'; END IF;
  -- The anchor first, with a new version: an order that read this slot a moment ago reads it again.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = t.agent_id;
  v_status := CASE p_outcome WHEN 'confirmed' THEN 'confirmed' ELSE 'failed' END;
  -- The state it comes from is named, so that a final state is never left, whatever is said later.
  UPDATE transactions SET status = v_status, resend_at = NULL, look_at = NULL,
         status_detail = CASE p_outcome WHEN 'reverted' THEN 'execution_reverted' WHEN 'replaced' THEN 'replaced'
                                        WHEN 'expired' THEN 'blockhash_expired'
                                        WHEN 'lapsed' THEN 'authorization_expired'
                                        WHEN 'canceled' THEN 'authorization_canceled' END,
         settled_by = p_settled_by,
         broadcast_at = CASE WHEN broadcast AND p_outcome IN ('confirmed', 'reverted')
                             THEN COALESCE(broadcast_at, service_now()) ELSE broadcast_at END,
         fee_paid = CASE WHEN p_outcome IN ('confirmed', 'reverted') THEN p_fee_paid::numeric END,
         confirmed_at = CASE WHEN p_outcome = 'confirmed' THEN service_now() END
   WHERE tenant_id = p_tenant AND id = p_tx AND status IN ('signed', 'broadcast');
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  IF t.nonce IS NOT NULL THEN
    UPDATE nonces SET state = 'seen' WHERE tenant_id = p_tenant AND chain_id = t.chain_id AND nonce = t.nonce
       AND address = (SELECT w.address FROM wallets w WHERE w.tenant_id = p_tenant AND w.agent_id = t.agent_id
                         AND w.family = t.family AND w.scope = '');
  END IF;
  PERFORM audit_append('system', 'node', 'tx.' || v_status, 'transaction', p_tx::text, p_evidence, p_origin);
  PERFORM emit(t.agent_id, p_events);
  IF p_breaker.most IS NOT NULL THEN
    PERFORM count_for_breaker(p_tenant, t.agent_id, t.incarnation, p_tx, 'failed', p_breaker, p_origin);
  END IF;
  RETURN 'done';
END $$;
