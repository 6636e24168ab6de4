-- What ends by itself: approvals that nobody decided, and rows that nobody needs any more.

-- ---------------------------------------------------------------- approvals that nobody decided

CREATE INDEX approvals_due ON approvals (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;

CREATE FUNCTION due_approvals(p_limit integer) RETURNS TABLE (tenant_id text, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- Asked for once, or no index would do. Two schedulers may find the same: the signer expires each once.
  SELECT p.tenant_id, p.id FROM approvals p
   WHERE p.status = 'pending' AND p.expires_at IS NOT NULL AND p.expires_at <= (SELECT service_now())
   ORDER BY p.expires_at LIMIT p_limit
$$;

CREATE FUNCTION expire_write(p_tenant text, p_approval uuid, p_origin text[]) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_agent text; v_now timestamptz; v_item record; v_order record;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  SELECT agent_id INTO v_agent FROM approvals WHERE tenant_id = p_tenant AND id = p_approval;
  -- The anchor first, as approve and deny do: the three queue up here, whoever is second finds the item resolved.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = v_agent;
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  v_now := service_now();
  UPDATE approvals SET status = 'expired', resolved_at = v_now, resolved_by = 'system'
   WHERE tenant_id = p_tenant AND id = p_approval AND status = 'pending' AND expires_at <= v_now
  RETURNING tx_id, digest INTO v_item;
  IF NOT FOUND THEN RETURN 'unchanged'; END IF;
  UPDATE transactions SET status = 'rejected', status_detail = 'approval_expired'
   WHERE tenant_id = p_tenant AND id = v_item.tx_id AND status = 'pending_approval'
  RETURNING to_address, value, chain_id INTO v_order;
  IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_approval; END IF;
  PERFORM audit_append('system', 'expiry', 'tx.expired', 'transaction', v_item.tx_id::text, json_build_object(
    'agentId', v_agent, 'approvalId', p_approval, 'digest', encode(v_item.digest, 'hex'))::text, p_origin);
  PERFORM emit(v_agent, json_build_array(json_build_object('event', 'tx.denied', 'data', json_build_object(
    'approvalId', p_approval, 'txId', v_item.tx_id, 'to', v_order.to_address, 'value', v_order.value::text,
    'chainId', v_order.chain_id, 'reason', 'expired', 'resolvedBy', 'system')))::text);
  RETURN 'expired';
END $$;
COMMENT ON FUNCTION expire_write IS 'The end of an item whose time is up on the clock of the database; nobody''s word is taken for it.';

-- ---------------------------------------------------------------- what goes when

CREATE TABLE retention (
  what     text PRIMARY KEY,
  relation text NOT NULL,
  old      text NOT NULL,
  place    integer GENERATED ALWAYS AS IDENTITY
);
COMMENT ON TABLE retention IS 'What is deleted when it is old, a line for each; the owner alone writes it, and retain() obeys it.';
COMMENT ON COLUMN retention.old IS 'A condition on r, with $1 for the present moment. An index must answer it.';
COMMENT ON COLUMN retention.place IS 'In this order: what names another row goes before it, so that no deletion pulls many others with it.';

CREATE FUNCTION retain(p_what text, p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_line retention; v_gone bigint;
BEGIN
  SELECT * INTO STRICT v_line FROM retention WHERE what = p_what;
  -- A row that somebody holds is left for the next time: nobody waits for this, and this waits for nobody. The moment
  -- is a parameter, so that the plan is made for it and an index can be used.
  EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM %1$I AS r WHERE %2$s LIMIT $2 FOR UPDATE OF r SKIP LOCKED))', v_line.relation, v_line.old)
    USING service_now(), p_limit;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;
COMMENT ON FUNCTION retain IS 'One batch of one line of retention; how many rows went.';

-- A month of history, and what still waits then for a receiver that never answers: its event is gone by then, too.
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;
INSERT INTO retention (what, relation, old) VALUES
  ('deliveries', 'deliveries', $$r.created_at < $1 - interval '30 days'$$),
  ('events', 'events', $$r.published_at < $1 - interval '30 days'$$),
  ('deleted endpoints', 'webhook_endpoints', $$r.deleted_at < $1 - interval '30 days' AND NOT EXISTS (SELECT FROM deliveries d
     WHERE d.tenant_id = r.tenant_id AND d.endpoint_id = r.id)$$);

-- Proofs and codes that are over. Those of a device are told for an hour that they are.
INSERT INTO retention (what, relation, old) VALUES
  ('idempotency keys', 'idempotency', $$r.expires_at < $1$$),
  ('sign-in nonces', 'sign_in_nonces', $$r.expires_at < $1$$),
  ('sign-in codes', 'sign_in_codes', $$r.expires_at < $1$$),
  ('challenges', 'challenges', $$r.expires_at < $1$$),
  ('enrolments', 'enrolments', $$r.expires_at < $1$$),
  ('device codes', 'device_codes', $$r.expires_at < $1 - interval '1 hour'$$),
  ('attempts', 'attempts', $$r.ends_at < $1$$),
  ('sessions', 'sessions', $$LEAST(r.revoked_at, r.expires_at) < $1 - interval '30 days'$$);

-- Signatures of requests, and what they were made with. The signatures of an ended key go before it, a batch at a time.
CREATE INDEX used_signatures_age ON used_signatures (expires_at) WHERE expires_at < 'infinity';
CREATE INDEX signing_keys_ended ON signing_keys (LEAST(revoked_at, retires_at));
CREATE INDEX app_secrets_ended ON app_secrets (LEAST(revoked_at, retires_at));
INSERT INTO retention (what, relation, old) VALUES
  -- A minute later than it must, for clocks differ.
  ('used signatures', 'used_signatures', $$r.expires_at < 'infinity' AND r.expires_at < $1 - interval '1 minute'$$),
  -- A day later no request that the key signed is under way any more.
  ('signatures of ended keys', 'used_signatures', $$(r.tenant_id, r.key_name) IN (
     SELECT k.tenant_id, k.id::text FROM signing_keys k WHERE LEAST(k.revoked_at, k.retires_at) < $1 - interval '1 day'
     UNION ALL SELECT a.tenant_id, encode(a.secret_hash, 'hex') FROM app_secrets a WHERE LEAST(a.revoked_at, a.retires_at) < $1 - interval '1 day')$$),
  ('sealed values of ended signing keys', 'sealed', $$r.owner_kind = 'signing_key' AND (r.tenant_id, r.owner) IN (
     SELECT k.tenant_id, k.id::text FROM signing_keys k WHERE LEAST(k.revoked_at, k.retires_at) < $1 - interval '1 day')$$),
  -- Listed for ninety days, so that a person finds out why a program was refused.
  ('ended signing keys', 'signing_keys', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND NOT EXISTS (
     SELECT FROM used_signatures u WHERE u.tenant_id = r.tenant_id AND u.key_name = r.id::text)$$),
  ('ended app secrets', 'app_secrets', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND NOT EXISTS (
     SELECT FROM used_signatures u WHERE u.tenant_id = r.tenant_id AND u.key_name = encode(r.secret_hash, 'hex'))$$);

-- Secrets. One that a route still names stays: without it the route would be gone too, and another one could match.
CREATE INDEX secrets_deleted ON secrets (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX secrets_expired ON secrets (expires_at) WHERE expires_at IS NOT NULL;
INSERT INTO retention (what, relation, old) VALUES
  ('values of expired secrets', 'sealed', $$r.owner_kind = 'secret' AND (r.tenant_id, r.owner) IN (
     SELECT s.tenant_id, s.id::text FROM secrets s WHERE s.expires_at < $1 - interval '30 days')$$),
  ('deleted secrets', 'secrets', $$r.deleted_at < $1 - interval '30 days' AND NOT EXISTS (
     SELECT FROM credential_routes c WHERE c.tenant_id = r.tenant_id AND c.secret_id = r.id)$$);

-- Buckets that no window reaches: the widest is a week.
CREATE INDEX event_marks_age ON event_marks (at);
CREATE INDEX spend_age ON spend (hour);
CREATE INDEX rate_age ON rate (bucket);
INSERT INTO retention (what, relation, old) VALUES
  ('event marks', 'event_marks', $$r.at < $1 - interval '8 days'$$),
  ('spend', 'spend', $$r.hour < $1 - interval '8 days'$$),
  ('rate', 'rate', $$r.bucket < $1 - interval '8 days'$$);

-- ---------------------------------------------------------------- grants

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT ON retention TO custody_scheduler, custody_definer;
GRANT SELECT ON approvals, credential_routes TO custody_definer;
GRANT SELECT, DELETE ON deliveries, events, webhook_endpoints, idempotency, sign_in_nonces, sign_in_codes, challenges, enrolments,
  device_codes, attempts, sessions, used_signatures, sealed, signing_keys, app_secrets, secrets, event_marks, spend, rate TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; nothing here does.
GRANT UPDATE (created_at) ON deliveries, webhook_endpoints, sessions, signing_keys, app_secrets, secrets TO custody_definer;
GRANT UPDATE (published_at) ON events TO custody_definer;
GRANT UPDATE (expires_at) ON idempotency, sign_in_nonces, sign_in_codes, challenges, enrolments, device_codes, used_signatures TO custody_definer;
GRANT UPDATE (ends_at) ON attempts TO custody_definer;
GRANT UPDATE (purpose) ON sealed TO custody_definer;
GRANT UPDATE (at) ON event_marks TO custody_definer;
GRANT UPDATE (hour) ON spend TO custody_definer;
GRANT UPDATE (bucket) ON rate TO custody_definer;
GRANT EXECUTE ON FUNCTION expire_write TO custody_signer;
GRANT EXECUTE ON FUNCTION due_approvals, retain TO custody_scheduler;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION due_approvals OWNER TO custody_definer;
ALTER FUNCTION retain OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
