-- What every later part of "after the answer" stands on: published events, the queue of the sealer, the jobs' figures, and
-- what an order's record gained for receipts and replacements.

-- ---------------------------------------------------------------- jobs

CREATE TABLE jobs (
  name              text PRIMARY KEY,
  last_success_at   timestamptz,
  last_failure_at   timestamptz,
  last_items        bigint NOT NULL DEFAULT 0,
  last_milliseconds bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE jobs IS 'How each job of the schedulers last ended, for people and /ready; nothing is decided by it.';

CREATE FUNCTION job_ended(p_name text, p_good boolean, p_items bigint, p_milliseconds bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO jobs AS j (name, last_success_at, last_failure_at, last_items, last_milliseconds)
  VALUES (p_name, CASE WHEN p_good THEN service_now() END, CASE WHEN NOT p_good THEN service_now() END, p_items, p_milliseconds)
  ON CONFLICT (name) DO UPDATE SET last_success_at = COALESCE(excluded.last_success_at, j.last_success_at),
      last_failure_at = COALESCE(excluded.last_failure_at, j.last_failure_at), last_items = excluded.last_items,
      last_milliseconds = excluded.last_milliseconds
$$;

-- ---------------------------------------------------------------- events: written to the outbox, then published in order

ALTER TABLE outbox DROP COLUMN xact;
ALTER TABLE outbox ADD COLUMN event_id uuid NOT NULL DEFAULT gen_random_uuid();
COMMENT ON TABLE outbox IS 'Written by the acting transaction, taken away by the one publisher; so it is small and hot.';

CREATE TABLE events (
  tenant_id    text NOT NULL,
  number       bigint GENERATED ALWAYS AS IDENTITY,
  id           uuid NOT NULL,
  event        text NOT NULL,
  agent_id     text,
  data         text NOT NULL,
  created_at   timestamptz NOT NULL,
  published_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, number)
);
COMMENT ON TABLE events IS 'What was published. One publisher at a time numbers them, so who has read up to a number has missed nothing.';
CREATE INDEX events_age ON events (published_at);

-- ---------------------------------------------------------------- audit rows that wait to be sealed

ALTER TABLE audit DROP COLUMN xact;
-- A process sets its tenant itself; a name with a line break in it would be another log's line in a signed checkpoint.
ALTER TABLE audit ADD CONSTRAINT audit_of_a_tenant CHECK (tenant_id ~ '^[A-Za-z0-9_.:-]{1,64}$');
CREATE TABLE audit_unsealed (
  tenant_id text NOT NULL,
  seq       bigint NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);
COMMENT ON TABLE audit_unsealed IS 'Committed with each audit row, by whoever wrote it; the sealer takes it away with the row''s place in the log.';

CREATE FUNCTION audit_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO audit_unsealed (tenant_id, seq) VALUES (NEW.tenant_id, NEW.seq);
  RETURN NULL;
END $$;
INSERT INTO audit_unsealed (tenant_id, seq) SELECT tenant_id, seq FROM audit;
CREATE TRIGGER audit_queue AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_queue();

-- ---------------------------------------------------------------- what an order's record gained

ALTER TABLE transactions ADD COLUMN budgets text, ADD COLUMN policy_hash bytea;
COMMENT ON COLUMN transactions.budgets IS 'Spend against each limit, before and after, as the judge saw it when it signed.';
COMMENT ON COLUMN transactions.policy_hash IS 'SHA-256 of the rule set that judged, as docs/receipts.md spells it.';
ALTER TYPE sign_record ADD ATTRIBUTE slot_was text, ADD ATTRIBUTE budgets text, ADD ATTRIBUTE policy_hash bytea;

-- As in 0001; new: the slot's state as it was read, budgets and the policies' hash.
CREATE OR REPLACE FUNCTION sign_write(p_tenant text, p_agent text, p_incarnation uuid, p_epoch integer, p_ledger_version bigint,
                           p_policy_version bigint, p_config_version bigint, p_caller_key bytea,
                           p_claim uuid, p_claim_user text, r sign_record) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The guard. Whoever comes second finds another version, writes nothing and reads again.
  UPDATE agents SET ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = p_incarnation AND ledger_version = p_ledger_version
     AND policy_version = p_policy_version AND frozen_at IS NULL AND (p_epoch IS NULL OR token_epoch = p_epoch);
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  -- A statement after the lock, so it sees what was committed while the lock was waited for.
  IF EXISTS (SELECT FROM tenants WHERE id = p_tenant AND frozen_at IS NOT NULL)
     OR COALESCE((SELECT version FROM tenant_config WHERE tenant_id = p_tenant), 0) <> p_config_version THEN
    RETURN 'stale';
  END IF;
  IF p_caller_key IS NOT NULL THEN PERFORM demand_key(p_tenant, p_caller_key); END IF;
  v_now := service_now();
  -- What the slot counts names its hour; an order that was judged in the hour before is judged again.
  IF r.hour <> date_trunc('hour', v_now) THEN RETURN 'stale'; END IF;

  IF p_claim IS NULL THEN
    INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, status, to_address, value, data, chain_id, caip2,
        broadcast, reference_id, replaces_tx_id, order_text, digest, effects, policy_results, policy_version, nonce, fee,
        tx_hash, signature, signed_bytes, answer, created_at, signed_at, resend_at, budgets, policy_hash)
    VALUES (p_tenant, r.tx, p_agent, p_incarnation, r.kind, r.status, r.to_address, r.value::numeric, r.data, r.chain_id, r.caip2,
        r.broadcast, r.reference_id, r.replaces_tx_id, r.order_text, r.digest, r.effects, r.policy_results, r.policy_version,
        r.nonce, r.fee, r.tx_hash, r.signature, r.signed_bytes, r.answer, v_now,
        CASE WHEN r.status = 'signed' THEN v_now END,
        CASE WHEN r.status = 'signed' AND r.broadcast THEN v_now + interval '5 seconds' END, r.budgets, r.policy_hash);
  ELSE
    -- Claimed and signed in one transaction: one approval can never give two signatures (promise P2).
    UPDATE approvals SET status = 'approved', resolved_at = r.resolved_at, resolved_by = 'manual', resolved_by_user_id = p_claim_user
     WHERE tenant_id = p_tenant AND id = p_claim AND tx_id = r.tx AND status = 'pending' AND digest = r.digest
       AND (expires_at IS NULL OR expires_at > v_now);
    IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
    UPDATE transactions SET status = 'signed', nonce = r.nonce, fee = r.fee, effects = r.effects, policy_results = r.policy_results,
        policy_version = r.policy_version, tx_hash = r.tx_hash, signature = r.signature, signed_bytes = r.signed_bytes,
        replaces_tx_id = r.replaces_tx_id, signed_at = v_now, budgets = r.budgets, policy_hash = r.policy_hash,
        resend_at = CASE WHEN r.broadcast THEN v_now + interval '5 seconds' END
     WHERE tenant_id = p_tenant AND id = r.tx AND status = 'pending_approval';
    IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_claim; END IF;
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
      UPDATE spend s SET amount = s.amount - m.amount::numeric
        FROM unnest(r.moved_assets, r.moved_hours, r.moved_amounts) AS m (asset, hour, amount)
       WHERE s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.incarnation = p_incarnation AND s.asset = m.asset AND s.hour = m.hour;
    END IF;
  END IF;
  IF r.spend_assets IS NOT NULL THEN
    INSERT INTO spend AS s (tenant_id, agent_id, incarnation, asset, hour, amount)
    SELECT p_tenant, p_agent, p_incarnation, n.asset, date_trunc('hour', v_now), n.amount::numeric
      FROM unnest(r.spend_assets, r.spend_amounts) AS n (asset, amount)
    ON CONFLICT (tenant_id, agent_id, incarnation, asset, hour) DO UPDATE SET amount = s.amount + excluded.amount;
  END IF;
  IF r.counts_rate THEN
    INSERT INTO rate AS q (tenant_id, agent_id, incarnation, grain, bucket, orders)
    VALUES (p_tenant, p_agent, p_incarnation, 'minute', date_trunc('minute', v_now), 1),
           (p_tenant, p_agent, p_incarnation, 'hour', date_trunc('hour', v_now), 1)
    ON CONFLICT (tenant_id, agent_id, incarnation, grain, bucket) DO UPDATE SET orders = q.orders + 1;
  END IF;
  IF r.approval IS NOT NULL THEN
    INSERT INTO approvals (tenant_id, id, tx_id, agent_id, digest, mac, requested_at, expires_at)
    VALUES (p_tenant, r.approval, r.tx, p_agent, r.digest, r.approval_mac, v_now,
            CASE WHEN r.expire_seconds > 0 THEN v_now + make_interval(secs => r.expire_seconds) END);
  END IF;
  IF r.key_hash IS NOT NULL AND NOT idempotency_put(p_tenant, r.principal, r.route, r.key_hash, r.fingerprint, r.idem_answer, r.tx) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append(r.actor_type, r.actor_id, r.action, 'transaction', r.tx::text, r.metadata, r.origin);
  PERFORM emit(p_agent, r.events);
  RETURN 'done';
END $$;

-- ---------------------------------------------------------------- row-level security and grants

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['events', 'audit_unsealed'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT ON jobs, events TO custody_api;
REVOKE SELECT ON outbox FROM custody_api;
GRANT INSERT ON audit_unsealed TO custody_definer;
GRANT SELECT, INSERT, UPDATE ON jobs TO custody_definer;
GRANT EXECUTE ON FUNCTION job_ended TO custody_scheduler;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION job_ended OWNER TO custody_definer;
ALTER FUNCTION audit_queue OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
