-- What becomes of a transaction after it was sent, and its replacement.

ALTER TABLE transactions ADD COLUMN look_at timestamptz;
COMMENT ON COLUMN transactions.look_at IS 'When to ask a node next what became of it; null before it was sent and once it is final.';
CREATE INDEX transactions_following ON transactions (chain_id, look_at)
  WHERE status IN ('signed', 'broadcast') AND look_at IS NOT NULL;
CREATE INDEX transactions_replacing ON transactions (tenant_id, replaces_tx_id) WHERE replaces_tx_id IS NOT NULL;
UPDATE transactions SET look_at = service_now() WHERE status = 'broadcast' AND chain_id IS NOT NULL;

-- ---------------------------------------------------------------- claiming

-- As in 0001; new: what is sent again is followed too, for another transaction may have taken its place meanwhile, and
-- what was replaced is not sent any more.
CREATE OR REPLACE FUNCTION claim_unsent(p_limit integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, chain_id bigint, nonce bigint, signed_bytes bytea, tx_hash text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- The claim pushes the next try into the future, so a second scheduler skips the row and a dead one loses nothing.
  WITH due AS (
    SELECT t.tenant_id, t.id FROM transactions t
     WHERE t.status = 'signed' AND t.broadcast AND t.resend_at <= service_now()
     ORDER BY t.resend_at LIMIT p_limit FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE transactions t
       SET resends = t.resends + 1, look_at = COALESCE(t.look_at, service_now()),
           resend_at = service_now() + make_interval(secs => LEAST(300, 5 * power(2, LEAST(t.resends, 10))))
      FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
    RETURNING t.tenant_id, t.id, t.kind, t.chain_id, t.nonce, t.signed_bytes, t.tx_hash)
  SELECT * FROM claimed c WHERE NOT EXISTS (
    SELECT FROM transactions r WHERE r.tenant_id = c.tenant_id AND r.replaces_tx_id = c.id AND r.signature IS NOT NULL)
$$;

CREATE FUNCTION slot_of(p_tenant text, p_address text, p_chain bigint, p_nonce bigint, p_tx uuid) RETURNS text
LANGUAGE sql STABLE AS $$
  -- From who holds the slot back along what each replaced. Of very many only the newest are looked at together; each of
  -- the others is looked at beside them when it is its own turn.
  WITH RECURSIVE members AS (
    SELECT t.id, t.tx_hash, t.status, t.replaces_tx_id, 1 AS place
      FROM nonces n JOIN transactions t ON t.tenant_id = n.tenant_id AND t.id = n.tx_id
     WHERE n.tenant_id = p_tenant AND n.address = p_address AND n.chain_id = p_chain AND n.nonce = p_nonce
    UNION ALL
    SELECT t.id, t.tx_hash, t.status, t.replaces_tx_id, m.place + 1
      FROM members m JOIN transactions t ON t.tenant_id = p_tenant AND t.id = m.replaces_tx_id WHERE m.place < 32),
  everyone AS (
    SELECT id, tx_hash, status, place FROM members
    UNION ALL
    SELECT t.id, t.tx_hash, t.status, 33 FROM transactions t
     WHERE t.tenant_id = p_tenant AND t.id = p_tx AND NOT EXISTS (SELECT FROM members m WHERE m.id = p_tx))
  SELECT json_agg(json_build_object('id', id, 'hash', tx_hash, 'status', status) ORDER BY place)::text FROM everyone
$$;
COMMENT ON FUNCTION slot_of IS 'The transactions of ours that one nonce was signed for, the newest first, and always the one that is asked about.';

CREATE FUNCTION claim_following(p_chain bigint, p_limit integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, status text, address text, nonce bigint, tx_hash text,
               signed_bytes bytea, age_seconds double precision, slot text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- One chain at a time: a chain whose node is away holds up no other. The next look is a tenth of the age ahead.
  WITH due AS (
    SELECT t.tenant_id, t.id FROM transactions t
     WHERE t.chain_id = p_chain AND t.status IN ('signed', 'broadcast') AND t.look_at <= service_now()
     ORDER BY t.look_at LIMIT p_limit FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE transactions t
       SET look_at = service_now() + LEAST(interval '5 minutes',
                                           GREATEST(interval '2 seconds', (service_now() - t.signed_at) / 10))
      FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
    RETURNING t.*)
  SELECT c.tenant_id, c.id, c.kind, c.status, CASE c.kind WHEN 'evm' THEN a.evm_address ELSE a.solana_address END,
         c.nonce, c.tx_hash, c.signed_bytes, extract(epoch FROM service_now() - c.signed_at)::double precision,
         CASE c.kind WHEN 'evm' THEN slot_of(c.tenant_id, a.evm_address, c.chain_id, c.nonce, c.id) END
    FROM claimed c JOIN agents a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
$$;

-- ---------------------------------------------------------------- what a node said

DROP FUNCTION outcome_write(text, uuid, text, text[]);
CREATE FUNCTION outcome_write(p_tenant text, p_tx uuid, p_outcome text, p_origin text[], p_evidence text DEFAULT '{}') RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE t transactions; v_address text; v_status text;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  IF p_outcome = 'sent' THEN
    UPDATE transactions SET status = 'broadcast', broadcast_at = service_now(), resend_at = NULL,
           look_at = service_now() + interval '4 seconds'
     WHERE tenant_id = p_tenant AND id = p_tx AND status = 'signed' AND broadcast;
    IF NOT FOUND THEN RETURN 'unchanged'; END IF;
    PERFORM audit_append('system', 'node', 'tx.broadcast', 'transaction', p_tx::text, p_evidence, p_origin);
    RETURN 'done';
  END IF;
  IF p_outcome NOT IN ('confirmed', 'reverted', 'replaced', 'expired') THEN RAISE EXCEPTION 'unknown outcome %', p_outcome; END IF;
  SELECT * INTO t FROM transactions WHERE tenant_id = p_tenant AND id = p_tx;
  IF NOT FOUND OR t.status NOT IN ('signed', 'broadcast') THEN RETURN 'unchanged'; END IF;
  -- The anchor first, with a new version: an order that read this slot a moment ago reads it again.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = t.agent_id RETURNING evm_address INTO v_address;
  v_status := CASE p_outcome WHEN 'confirmed' THEN 'confirmed' ELSE 'failed' END;
  -- The state it comes from is named, so that a final state is never left, whatever is said later.
  UPDATE transactions SET status = v_status, resend_at = NULL, look_at = NULL,
         status_detail = CASE p_outcome WHEN 'reverted' THEN 'execution_reverted' WHEN 'replaced' THEN 'replaced'
                                        WHEN 'expired' THEN 'blockhash_expired' END,
         broadcast_at = CASE WHEN broadcast AND p_outcome IN ('confirmed', 'reverted') THEN COALESCE(broadcast_at, service_now())
                             ELSE broadcast_at END,
         confirmed_at = CASE WHEN p_outcome = 'confirmed' THEN service_now() END
   WHERE tenant_id = p_tenant AND id = p_tx AND status IN ('signed', 'broadcast');
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  IF t.kind = 'evm' THEN
    UPDATE nonces SET state = 'seen' WHERE tenant_id = p_tenant AND address = v_address AND chain_id = t.chain_id AND nonce = t.nonce;
  END IF;
  PERFORM audit_append('system', 'node', 'tx.' || v_status, 'transaction', p_tx::text, p_evidence, p_origin);
  RETURN 'done';
END $$;
COMMENT ON FUNCTION outcome_write IS 'What a node said. Nothing of it frees spend; a final state is never left.';

-- ---------------------------------------------------------------- what a replacement replaces

CREATE FUNCTION replaced_read(p_tenant text, p_agent text, p_tx uuid, p_new uuid)
RETURNS TABLE (incarnation uuid, token_epoch integer, kind text, status text, broadcast boolean, reference_id text, signed_bytes bytea,
               answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, t.kind, t.status, t.broadcast, t.reference_id, t.signed_bytes,
         (SELECT n.answer FROM transactions n WHERE n.tenant_id = p_tenant AND n.id = p_new AND n.agent_id = p_agent)
    FROM agents a LEFT JOIN transactions t ON t.tenant_id = a.tenant_id AND t.agent_id = a.id AND t.id = p_tx
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
COMMENT ON FUNCTION replaced_read IS 'The transaction to be replaced, the earlier answer to this very replacement, and which tokens of the agent count.';

-- ---------------------------------------------------------------- grants

REVOKE ALL ON FUNCTION slot_of, claim_following, outcome_write, replaced_read FROM PUBLIC;
GRANT EXECUTE ON FUNCTION outcome_write, replaced_read TO custody_signer;
GRANT EXECUTE ON FUNCTION claim_following TO custody_scheduler;
GRANT EXECUTE ON FUNCTION slot_of TO custody_definer;
GRANT UPDATE (look_at) ON transactions TO custody_definer;
GRANT SELECT ON nonces TO custody_definer;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION claim_following OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
