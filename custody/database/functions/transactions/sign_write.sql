-- Promises: The one transaction of what was judged together, mostly one order: guard, the charges of calls, and
--   for each order its row, approval, slot, spend, rate, idempotency, audit, events. stale: nothing was written, read
--   again; unclaimed: the approval or the intent is gone. CU003: a signature that authorised the order was used before.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION sign_write(p_tenant text, p_agent text, g sign_guard, p_credential credential, p_acts act[],
                           p_records sign_record[], p_vote vote, p_step intent_step, p_calls call_charge[])
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r       sign_record := p_records[1];
  v_used  integer;
  v_now   timestamptz;
  v_today date := utc_day();
  v_new   integer := CASE WHEN g.claim IS NULL THEN cardinality(p_records) ELSE 0 END;
  v_place integer;
  v_rated integer := 0;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- Judged on state that was kept. Its rows must be those that were read, and its rates are those of one minute.
  IF g.stamp IS NOT NULL AND (g.stamp IS DISTINCT FROM row_stamp(p_tenant, p_agent, g.family)
                              OR g.minute <> date_trunc('minute', service_now())) THEN
    RETURN 'stale';
  END IF;
  -- The guard. Of two writers the second finds another version, writes nothing and reads again.
  UPDATE agents SET ledger_version = ledger_version + 1, orders = orders + v_new,
         day_orders = CASE WHEN day = v_today THEN day_orders ELSE 0 END + v_new,
         day_bytes = CASE WHEN day = v_today THEN day_bytes ELSE 0 END + g.stored_bytes, day = v_today
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = g.incarnation AND ledger_version = g.ledger_version
     AND policy_version = g.policy_version AND frozen_at IS NULL AND (g.epoch IS NULL OR token_epoch = g.epoch);
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  -- A statement after the lock, so it sees what was committed while the lock was waited for.
  IF EXISTS (SELECT FROM tenants WHERE id = p_tenant AND frozen_at IS NOT NULL)
     OR COALESCE((SELECT version FROM tenant_config WHERE tenant_id = p_tenant), 0) <> g.config_version
     OR sets_stamp(p_tenant, p_agent) IS DISTINCT FROM g.sets THEN
    RETURN 'stale';
  END IF;
  -- Null where an agent's own token asks: its epoch is in the guard.
  IF p_credential.kind IS NOT NULL THEN PERFORM demand_credential(p_tenant, p_credential); END IF;
  v_now := service_now();
  -- What the slot counts names its hour; an order that was judged in the hour before is judged again.
  IF r.hour <> date_trunc('hour', v_now) THEN RETURN 'stale'; END IF;

  IF g.used_by IS NOT NULL THEN
    -- Behind the agent's lock: of two orders under one signature the second finds it used up.
    INSERT INTO used_signatures (tenant_id, key_name, signature_hash, idempotency_hash, expires_at)
    SELECT p_tenant, u.key_name, u.hash, g.used_for, g.used_until
      FROM unnest(g.used_by, g.used_marks) AS u (key_name, hash)
    ON CONFLICT (tenant_id, key_name, signature_hash) DO NOTHING;
    GET DIAGNOSTICS v_used = ROW_COUNT;
    IF v_used <> cardinality(g.used_by) THEN
      RAISE EXCEPTION 'a signature was used before' USING ERRCODE = 'CU003';
    END IF;
  END IF;

  IF g.voters IS NOT NULL THEN
    -- Behind the agent's lock: a person removed or a key revoked since the votes were counted counts no more.
    IF NOT voters_hold(p_tenant, g.voters, g.voter_macs, g.voter_keys) THEN RETURN 'stale'; END IF;
    IF p_vote.key_id IS NOT NULL AND NOT put_vote(p_tenant, p_vote) THEN RETURN 'stale'; END IF;
  END IF;

  IF cardinality(p_calls) > 0 AND NOT charge_calls(p_tenant, p_agent, g.incarnation, p_calls, v_now) THEN
    RETURN 'stale';
  END IF;

  IF p_step.id IS NOT NULL AND NOT take_step(p_tenant, p_step) THEN RETURN 'unclaimed'; END IF;

  FOR v_place IN 1 .. cardinality(p_records) LOOP
    r := p_records[v_place];
    IF g.claim IS NULL THEN
      INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status,
          to_address, value, data, chain_id,
          caip2, broadcast, reference_id, replaces_tx_id, order_text, digest, effects, moved,
          policy_results, policy_version, nonce, fee, tx_hash, signature, signed_bytes, answer, created_at, signed_at,
          resend_at, look_at, budgets, policy_hash, authorization_text, wallet_action)
      VALUES (p_tenant, r.tx, p_agent, g.incarnation, r.kind, r.family, r.status,
          r.to_address, r.value::numeric, r.data, r.chain_id,
          r.caip2, r.broadcast, r.reference_id, r.replaces_tx_id, r.order_text, r.digest, r.effects, r.moved,
          r.policy_results, r.policy_version, r.nonce, r.fee, r.tx_hash, r.signature, r.signed_bytes, r.answer, v_now,
          CASE WHEN r.status = 'signed' THEN v_now END,
          CASE WHEN r.status = 'signed' AND r.broadcast THEN v_now + make_interval(secs => r.resend_seconds) END,
          CASE WHEN r.status = 'signed' THEN v_now + make_interval(secs => r.look_seconds) END,
          r.budgets, r.policy_hash, r.authorization_text, r.wallet_action);
    ELSE
      -- Claimed and signed in one transaction: one approval can never give two signatures.
      UPDATE approvals SET status = 'approved', resolved_at = r.resolved_at,
             resolved_by = CASE WHEN g.releases THEN 'system' ELSE 'manual' END,
             resolved_by_user_id = g.claim_user, comment = g.claim_comment
       WHERE tenant_id = p_tenant AND id = g.claim AND tx_id = r.tx AND status = 'pending' AND digest = r.digest
         AND (expires_at IS NULL OR expires_at > v_now)
         -- Nobody decided it: its time must be over, and no freeze in between.
         AND (NOT g.releases OR (release_at <= v_now AND release_look_at IS NOT NULL));
      IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
      UPDATE transactions SET status = 'signed', nonce = r.nonce, fee = r.fee, effects = r.effects, moved = r.moved,
          policy_results = r.policy_results, policy_version = r.policy_version, tx_hash = r.tx_hash,
          signature = r.signature, signed_bytes = r.signed_bytes, replaces_tx_id = r.replaces_tx_id, signed_at = v_now,
          budgets = r.budgets, policy_hash = r.policy_hash, votes_text = r.votes_text,
          -- From now on the key of the order's own request tells of this signature.
          answer = r.answer,
          resend_at = CASE WHEN r.broadcast THEN v_now + make_interval(secs => r.resend_seconds) END,
          look_at = v_now + make_interval(secs => r.look_seconds)
       WHERE tenant_id = p_tenant AND id = r.tx AND status = 'pending_approval';
      IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', g.claim; END IF;
    END IF;

    IF r.slot_state IS NOT NULL THEN
      IF r.slot_from IS NULL THEN
        INSERT INTO nonces (tenant_id, agent_id, address, chain_id, nonce, tx_id, state, charges)
        VALUES (p_tenant, p_agent, r.slot_address, r.chain_id, r.nonce, r.tx, r.slot_state, r.slot_charges);
      ELSE
        UPDATE nonces SET tx_id = r.tx, state = r.slot_state, charges = r.slot_charges
         WHERE tenant_id = p_tenant AND address = r.slot_address AND chain_id = r.chain_id AND nonce = r.nonce
           AND tx_id = r.slot_from AND state = r.slot_was;
        IF NOT FOUND THEN RAISE EXCEPTION 'nonce slot % of % moved under its lock', r.nonce, r.slot_address; END IF;
      END IF;
    END IF;
    IF cardinality(r.moved_assets) > 0 THEN
      -- What the slot counted, or the same transaction when it was signed before, counts from now on in this hour.
      UPDATE spend s SET amount = s.amount - m.amount::numeric
        FROM unnest(r.moved_assets, r.moved_hours, r.moved_amounts) AS m (asset, hour, amount)
       WHERE s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.incarnation = g.incarnation
         AND s.asset = m.asset AND s.hour = m.hour;
    END IF;
    IF r.spend_assets IS NOT NULL THEN
      INSERT INTO spend AS s (tenant_id, agent_id, incarnation, asset, hour, amount)
      SELECT p_tenant, p_agent, g.incarnation, n.asset, date_trunc('hour', v_now), n.amount::numeric
        FROM unnest(r.spend_assets, r.spend_amounts) AS n (asset, amount)
      ON CONFLICT (tenant_id, agent_id, incarnation, asset, hour) DO UPDATE SET amount = s.amount + excluded.amount;
    END IF;
    IF r.spend_assets IS NOT NULL THEN PERFORM count_totals(p_tenant, p_agent, g.incarnation, r); END IF;
    IF r.unsigned_txid IS NOT NULL THEN
      INSERT INTO psbt_spends (tenant_id, agent_id, incarnation, unsigned_txid, tx_id, amount, micro_usd, hour)
      VALUES (p_tenant, p_agent, g.incarnation, r.unsigned_txid, r.tx, r.spend_amounts[1]::numeric,
              COALESCE(r.spend_amounts[array_position(r.spend_assets, 'usd')]::numeric, 0), date_trunc('hour', v_now))
      ON CONFLICT (tenant_id, agent_id, incarnation, unsigned_txid)
        DO UPDATE SET tx_id = excluded.tx_id, amount = excluded.amount, micro_usd = excluded.micro_usd,
                      hour = excluded.hour;
      INSERT INTO outpoints (tenant_id, agent_id, txid, vout, tx_id)
      SELECT p_tenant, p_agent, c.txid, c.vout, r.tx FROM unnest(r.spent_txids, r.spent_vouts) AS c (txid, vout);
    END IF;
    v_rated := v_rated + r.counts_rate::integer;
    IF r.approval IS NOT NULL THEN
      INSERT INTO approvals (tenant_id, id, tx_id, agent_id, digest, mac, requested_at, expires_at,
          waits_since, release_at, release_look_at)
      VALUES (p_tenant, r.approval, r.tx, p_agent, r.digest, r.approval_mac, v_now,
              CASE WHEN r.expire_seconds > 0 THEN v_now + make_interval(secs => r.expire_seconds) END,
              r.waits_since, r.release_at, r.release_at);
    END IF;
    IF r.recipient_kinds IS NOT NULL THEN PERFORM note_recipients(p_tenant, p_agent, g.incarnation, r); END IF;
    PERFORM finish_act(p_tenant, p_acts[v_place], r.action, 'transaction', r.tx::text, r.tx);
    PERFORM emit(p_agent, r.events);
    IF r.breaker_most IS NOT NULL THEN
      PERFORM count_for_breaker(
        p_tenant, p_agent, g.incarnation, r.tx, 'refused',
        ROW(r.breaker_minutes, r.breaker_most, r.breaker_reasons, r.breaker_events)::breaker, p_acts[v_place].origin);
    END IF;
  END LOOP;
  IF v_rated > 0 THEN
    INSERT INTO rate AS q (tenant_id, agent_id, incarnation, grain, bucket, orders)
    VALUES (p_tenant, p_agent, g.incarnation, 'minute', date_trunc('minute', v_now), v_rated),
           (p_tenant, p_agent, g.incarnation, 'hour', date_trunc('hour', v_now), v_rated)
    ON CONFLICT (tenant_id, agent_id, incarnation, grain, bucket) DO UPDATE SET orders = q.orders + excluded.orders;
  END IF;
  IF p_step.id IS NOT NULL THEN
    PERFORM audit_append(p_acts[1].actor_type, p_acts[1].actor_id, 'intent.' || p_step.status, 'intent',
                         p_step.id::text, p_step.told, p_acts[1].origin);
    PERFORM emit(p_agent, p_step.events);
  END IF;
  RETURN 'done';
END $$;
