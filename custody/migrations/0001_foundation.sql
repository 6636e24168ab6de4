-- Tables, functions, row-level security and grants of the foundation.
--
-- Tenant first in every key. No process role owns a table; each is granted only what it needs (docs/map.md).
-- Every tenant table answers only where custody.tenant is set in the transaction: unset raises, empty matches nothing.

CREATE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
COMMENT ON FUNCTION service_now IS 'The one SQL clock. Tests replace it as the owner; no process can.';

-- ---------------------------------------------------------------- tables

CREATE TABLE tenants (
  id          text PRIMARY KEY CHECK (id <> 'platform'),
  name        text NOT NULL,
  webhook_url text,
  frozen_at   timestamptz,
  frozen_reason text,
  created_at  timestamptz NOT NULL DEFAULT service_now()
);

CREATE TABLE tenant_keys (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  key_hash   bytea NOT NULL UNIQUE,
  prefix     text NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  revoked_at timestamptz,
  PRIMARY KEY (tenant_id, key_hash)
);

CREATE TABLE tenant_config (
  tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  version   bigint NOT NULL,
  document  text NOT NULL,
  judging   text NOT NULL,
  mac       bytea NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT service_now()
);
COMMENT ON COLUMN tenant_config.judging IS 'The part that the signer judges by, under its MAC.';

CREATE TABLE agents (
  tenant_id      text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id             text NOT NULL,
  name           text NOT NULL,
  platform_id    text,
  incarnation    uuid NOT NULL,
  evm_address    text NOT NULL,
  solana_address text NOT NULL,
  token_epoch    integer NOT NULL DEFAULT 1,
  ledger_version bigint NOT NULL DEFAULT 1,
  policy_version bigint NOT NULL DEFAULT 1,
  frozen_at      timestamptz,
  frozen_reason  text,
  created_at     timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 50); -- every order updates its agent's row; room on the page keeps that cheap
COMMENT ON TABLE agents IS 'The lock anchor: every acting story updates this row first.';
-- Without the id: an index that ends in it would look as good as the primary key to a planner without statistics.
CREATE INDEX agents_newest ON agents (tenant_id, created_at DESC);

CREATE TABLE sealed (
  tenant_id   text NOT NULL,
  owner_kind  text NOT NULL CHECK (owner_kind IN ('agent', 'token_key')),
  owner       text NOT NULL,
  purpose     text NOT NULL,
  key_version integer NOT NULL,
  blob        bytea NOT NULL,
  agent_id    text GENERATED ALWAYS AS (CASE WHEN owner_kind = 'agent' THEN owner END) STORED,
  PRIMARY KEY (tenant_id, owner_kind, owner, purpose),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

CREATE TABLE policy_heads (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  version   bigint NOT NULL,
  count     integer NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, agent_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

CREATE TABLE policy_rules (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  position  integer NOT NULL,
  id        text NOT NULL,
  type      text NOT NULL,
  enabled   boolean NOT NULL,
  config    text NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, position),
  UNIQUE (tenant_id, agent_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);

CREATE TABLE transactions (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  kind        text NOT NULL CHECK (kind IN ('evm', 'typed_data', 'solana', 'bitcoin')),
  status      text NOT NULL CHECK (status IN ('pending_approval', 'rejected', 'signed', 'broadcast', 'confirmed', 'failed')),
  status_detail text,
  to_address  text,
  value       numeric(78, 0),
  data        text,
  chain_id    bigint,
  caip2       text,
  broadcast   boolean NOT NULL,
  reference_id text,
  replaces_tx_id uuid,
  order_text  text NOT NULL,
  digest      bytea NOT NULL,
  effects     text NOT NULL,
  policy_results text NOT NULL,
  policy_version bigint NOT NULL,
  nonce       bigint,
  fee         text,
  tx_hash     text,
  signature   text,
  signed_bytes bytea,
  answer      bytea NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT service_now(),
  signed_at   timestamptz,
  broadcast_at timestamptz,
  confirmed_at timestamptz,
  resend_at   timestamptz,
  resends     integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT signed_has_signature CHECK (status IN ('pending_approval', 'rejected') OR signature IS NOT NULL),
  CONSTRAINT unsigned_has_none CHECK (status NOT IN ('pending_approval', 'rejected') OR (signature IS NULL AND signed_bytes IS NULL))
);
CREATE INDEX transactions_newest ON transactions (tenant_id, agent_id, created_at DESC);
CREATE INDEX transactions_hash ON transactions (tenant_id, tx_hash) WHERE tx_hash IS NOT NULL;
CREATE INDEX transactions_reference ON transactions (tenant_id, agent_id, reference_id) WHERE reference_id IS NOT NULL;
CREATE INDEX transactions_unsent ON transactions (resend_at) WHERE status = 'signed' AND broadcast;

CREATE TABLE approvals (
  tenant_id    text NOT NULL,
  id           uuid NOT NULL,
  tx_id        uuid NOT NULL,
  agent_id     text NOT NULL,
  status       text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected', 'expired')),
  digest       bytea NOT NULL,
  mac          bytea NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT service_now(),
  expires_at   timestamptz,
  resolved_at  timestamptz,
  resolved_by  text,
  resolved_by_user_id text,
  reason       text,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, tx_id),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT resolved_has_time CHECK ((status = 'pending') = (resolved_at IS NULL))
);
CREATE INDEX approvals_queue ON approvals (tenant_id, status, requested_at DESC);
CREATE INDEX approvals_of_agent ON approvals (tenant_id, agent_id) WHERE status = 'pending';

CREATE TABLE spend (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  asset       text NOT NULL,
  hour        timestamptz NOT NULL,
  amount      numeric(100, 0) NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (tenant_id, agent_id, incarnation, asset, hour),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE TABLE rate (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  grain       text NOT NULL CHECK (grain IN ('minute', 'hour')),
  bucket      timestamptz NOT NULL,
  orders      integer NOT NULL CHECK (orders > 0),
  PRIMARY KEY (tenant_id, agent_id, incarnation, grain, bucket),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
) WITH (fillfactor = 50);

CREATE TABLE nonces (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  address   text NOT NULL,
  chain_id  bigint NOT NULL,
  nonce     bigint NOT NULL,
  tx_id     uuid NOT NULL,
  state     text NOT NULL CHECK (state IN ('open', 'sent', 'seen')),
  charges   text NOT NULL,
  PRIMARY KEY (tenant_id, address, chain_id, nonce),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON COLUMN nonces.state IS 'open: signed, none of its bytes meant for a node; sent: bytes on their way; seen: on chain.';
COMMENT ON COLUMN nonces.charges IS 'asset -> {amount, hour}: what this slot counts in spend, at its largest.';

CREATE TABLE idempotency (
  tenant_id   text NOT NULL,
  principal   text NOT NULL,
  route       text NOT NULL,
  key_hash    bytea NOT NULL,
  fingerprint bytea NOT NULL,
  answer      bytea,
  tx_id       uuid,
  expires_at  timestamptz NOT NULL,
  tenant_row  text GENERATED ALWAYS AS (NULLIF(tenant_id, 'platform')) STORED REFERENCES tenants ON DELETE CASCADE,
  PRIMARY KEY (tenant_id, principal, route, key_hash)
);
COMMENT ON COLUMN idempotency.answer IS 'The signer''s answer; null where it showed a secret once.';
CREATE INDEX idempotency_due ON idempotency (expires_at);

CREATE TABLE event_marks (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  mark      text NOT NULL,
  at        timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, mark),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE event_marks IS 'When a coalesced event was last emitted.';

CREATE TABLE audit (
  tenant_id     text NOT NULL,
  seq           bigint GENERATED ALWAYS AS IDENTITY,
  written_by    text NOT NULL,
  actor_type    text NOT NULL CHECK (actor_type IN ('user', 'agent', 'system')),
  actor_id      text NOT NULL,
  action        text NOT NULL,
  resource_type text NOT NULL,
  resource_id   text NOT NULL,
  metadata      text NOT NULL,
  ip_address    text,
  user_agent    text,
  request_id    text,
  created_at    timestamptz NOT NULL,
  xact          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (tenant_id, seq)
);
COMMENT ON TABLE audit IS 'Appended by audit_append alone; outlives what it speaks of, so no foreign keys.';

CREATE TABLE outbox (
  tenant_id  text NOT NULL,
  id         bigint GENERATED ALWAYS AS IDENTITY,
  event      text NOT NULL,
  agent_id   text,
  data       text NOT NULL,
  created_at timestamptz NOT NULL,
  xact       xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (tenant_id, id)
);

CREATE TABLE token_keys (
  kid        text PRIMARY KEY,
  public_key bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  retired_at timestamptz
);

CREATE TABLE platform_keys (
  key_hash   bytea PRIMARY KEY,
  prefix     text NOT NULL,
  scopes     text[],
  from_file  boolean NOT NULL DEFAULT false,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  revoked_at timestamptz
);
COMMENT ON COLUMN platform_keys.scopes IS 'null: every scope.';

-- ---------------------------------------------------------------- row-level security

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['tenant_keys', 'tenant_config', 'agents', 'sealed', 'policy_heads', 'policy_rules',
      'transactions', 'approvals', 'spend', 'rate', 'nonces', 'idempotency', 'event_marks', 'audit', 'outbox'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON tenants TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (id = current_setting('custody.tenant'));
CREATE POLICY across ON tenants TO custody_definer USING (true);

-- ---------------------------------------------------------------- appending audit rows and events

CREATE FUNCTION audit_append(p_actor_type text, p_actor_id text, p_action text, p_resource_type text, p_resource_id text,
                             p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- The writer is stamped from the session, and what only the signer may claim nobody else can write.
  IF p_action ~ '^(tx|policy|key|agent|tenant|approval)\.' AND session_user <> 'custody_signer' THEN
    RAISE EXCEPTION 'role % may not write the audit action %', session_user, p_action;
  END IF;
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  VALUES (current_setting('custody.tenant'), session_user, p_actor_type, p_actor_id, p_action, p_resource_type,
          p_resource_id, p_metadata, p_origin[2], p_origin[3], p_origin[1], service_now());
END $$;
COMMENT ON FUNCTION audit_append IS 'p_origin: request id, address, user agent.';

CREATE FUNCTION outbox_append(p_event text, p_agent text, p_data text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
  VALUES (current_setting('custody.tenant'), p_event, p_agent, p_data, service_now())
$$;

-- ---------------------------------------------------------------- across tenants: the listed set

CREATE FUNCTION find_tenant_key(p_hash bytea) RETURNS TABLE (tenant_id text, prefix text, mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.tenant_id, k.prefix, k.mac FROM tenant_keys k WHERE k.key_hash = p_hash AND k.revoked_at IS NULL
$$;

CREATE FUNCTION find_platform_key(p_hash bytea) RETURNS TABLE (prefix text, scopes text[], mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.prefix, k.scopes, k.mac FROM platform_keys k WHERE k.key_hash = p_hash AND k.revoked_at IS NULL
$$;

CREATE FUNCTION platform_tenants(p_limit integer, p_offset integer)
RETURNS TABLE (id text, name text, frozen_at timestamptz, created_at timestamptz, total bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t.id, t.name, t.frozen_at, t.created_at, (SELECT count(*) FROM tenants)
    FROM tenants t ORDER BY t.created_at DESC, t.id LIMIT p_limit OFFSET p_offset
$$;

CREATE FUNCTION platform_tenant(p_id text)
RETURNS TABLE (id text, name text, frozen_at timestamptz, created_at timestamptz, agent_count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t.id, t.name, t.frozen_at, t.created_at, (SELECT count(*) FROM agents a WHERE a.tenant_id = t.id)
    FROM tenants t WHERE t.id = p_id
$$;

CREATE FUNCTION platform_stats() RETURNS TABLE (tenants bigint, agents bigint, transactions bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT (SELECT count(*) FROM tenants), (SELECT count(*) FROM agents), (SELECT count(*) FROM transactions)
$$;

CREATE FUNCTION anything_sealed() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT EXISTS (SELECT FROM sealed) $$;

CREATE FUNCTION schema_version() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT max(name) FROM tortoise_migrations $$;

CREATE FUNCTION claim_unsent(p_limit integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, chain_id bigint, nonce bigint, signed_bytes bytea, tx_hash text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- The claim pushes the next try into the future, so a second scheduler skips the row and a dead one loses nothing.
  WITH due AS (
    SELECT t.tenant_id, t.id FROM transactions t
     WHERE t.status = 'signed' AND t.broadcast AND t.resend_at <= service_now()
     ORDER BY t.resend_at LIMIT p_limit FOR UPDATE SKIP LOCKED)
  UPDATE transactions t
     SET resends = t.resends + 1,
         resend_at = service_now() + make_interval(secs => LEAST(300, 5 * power(2, LEAST(t.resends, 10))))
    FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
  RETURNING t.tenant_id, t.id, t.kind, t.chain_id, t.nonce, t.signed_bytes, t.tx_hash
$$;

-- ---------------------------------------------------------------- idempotency of the signer's stories

CREATE FUNCTION idempotency_put(p_tenant text, p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea,
                                p_answer bytea, p_tx uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF p_key_hash IS NULL THEN RETURN true; END IF;
  -- An expired row is taken over; a living one means that somebody else was first.
  INSERT INTO idempotency AS i (tenant_id, principal, route, key_hash, fingerprint, answer, tx_id, expires_at)
  VALUES (p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, p_tx, service_now() + interval '24 hours')
  ON CONFLICT (tenant_id, principal, route, key_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, tx_id = excluded.tx_id, expires_at = excluded.expires_at
   WHERE i.expires_at <= service_now();
  RETURN FOUND;
END $$;

CREATE FUNCTION idempotency_find(p_tenant text, p_principal text, p_route text, p_key_hash bytea)
RETURNS TABLE (fingerprint bytea, answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT i.fingerprint, COALESCE(i.answer, t.answer)
    FROM idempotency i LEFT JOIN transactions t ON t.tenant_id = p_tenant AND t.id = i.tx_id
   WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route AND i.key_hash = p_key_hash
     AND i.expires_at > service_now();
END $$;

CREATE FUNCTION demand_key(p_tenant text, p_key bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- Raised, not returned: nothing of a story may stay that a revoked key began.
  IF p_key IS NOT NULL AND NOT EXISTS (
       SELECT FROM tenant_keys WHERE tenant_id = p_tenant AND key_hash = p_key AND revoked_at IS NULL) THEN
    RAISE EXCEPTION 'key revoked' USING ERRCODE = 'CU002';
  END IF;
END $$;

-- ---------------------------------------------------------------- the sign path: one read, one write

CREATE FUNCTION sign_read(p_tenant text, p_agent text, p_purpose text, p_chain bigint, p_pending bigint, p_nonce bigint,
                          p_takes_open boolean, p_principal text, p_route text, p_key_hash bytea, p_tx uuid)
RETURNS TABLE (now timestamptz, incarnation uuid, token_epoch integer, ledger_version bigint, policy_version bigint,
               agent_frozen boolean, tenant_frozen boolean, address text, agent_name text,
               head_version bigint, head_count integer, head_mac bytea, rules text,
               key_version integer, blob bytea, config_version bigint, judging text, judging_mac bytea,
               spend text, orders_last_hour bigint, orders_last_day bigint,
               highest_nonce bigint, slot_nonce bigint, slot_state text, slot_tx uuid, slot_charges text,
               idem_fingerprint bytea, idem_answer bytea, tx_answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  now := service_now();
  -- The version is read first and everything that is summed after it: what changes in between moves the version, and
  -- the write refuses. (The other way round, a sum could be older than the version that vouches for it.) Small
  -- statements instead of one large one, because most of their cost is starting them and many are not needed.
  SELECT a.incarnation, a.token_epoch, a.ledger_version, a.policy_version, a.frozen_at IS NOT NULL,
         CASE p_purpose WHEN 'solana' THEN a.solana_address ELSE a.evm_address END, a.name
    INTO incarnation, token_epoch, ledger_version, policy_version, agent_frozen, address, agent_name
    FROM agents a WHERE a.tenant_id = p_tenant AND a.id = p_agent;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT t.frozen_at IS NOT NULL INTO tenant_frozen FROM tenants t WHERE t.id = p_tenant;
  SELECT c.version, c.judging, c.mac INTO config_version, judging, judging_mac FROM tenant_config c WHERE c.tenant_id = p_tenant;
  config_version := COALESCE(config_version, 0);
  SELECT h.version, h.count, h.mac INTO head_version, head_count, head_mac
    FROM policy_heads h WHERE h.tenant_id = p_tenant AND h.agent_id = p_agent;
  IF head_count > 0 THEN
    SELECT json_agg(json_build_array(r.id, r.type, r.enabled, r.config) ORDER BY r.position)::text INTO rules
      FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent;
  ELSIF EXISTS (SELECT FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent) THEN
    rules := '[["", "", true, ""]]';
  END IF;
  SELECT s.key_version, s.blob INTO key_version, blob
    FROM sealed s WHERE s.tenant_id = p_tenant AND s.owner_kind = 'agent' AND s.owner = p_agent AND s.purpose = p_purpose;
  SELECT json_agg(json_build_array(w.asset, w.day::text, w.week::text))::text INTO spend FROM (
    SELECT p.asset, COALESCE(sum(p.amount) FILTER (WHERE p.hour >= date_trunc('hour', now - interval '24 hours')), 0) AS day,
           sum(p.amount) AS week
      FROM spend p WHERE p.tenant_id = p_tenant AND p.agent_id = p_agent AND p.incarnation = sign_read.incarnation
       AND p.hour >= date_trunc('hour', now - interval '168 hours') GROUP BY p.asset) w;
  SELECT COALESCE(sum(q.orders) FILTER (WHERE q.grain = 'minute'), 0), COALESCE(sum(q.orders) FILTER (WHERE q.grain = 'hour'), 0)
    INTO orders_last_hour, orders_last_day
    FROM rate q WHERE q.tenant_id = p_tenant AND q.agent_id = p_agent AND q.incarnation = sign_read.incarnation
     AND ((q.grain = 'minute' AND q.bucket >= date_trunc('minute', now - interval '1 hour'))
       OR (q.grain = 'hour' AND q.bucket >= date_trunc('hour', now - interval '24 hours')));
  IF p_chain IS NOT NULL THEN
    SELECT n.nonce INTO highest_nonce FROM nonces n
     WHERE n.tenant_id = p_tenant AND n.address = sign_read.address AND n.chain_id = p_chain ORDER BY n.nonce DESC LIMIT 1;
    IF p_nonce IS NOT NULL THEN
      SELECT n.nonce, n.state, n.tx_id, n.charges INTO slot_nonce, slot_state, slot_tx, slot_charges FROM nonces n
       WHERE n.tenant_id = p_tenant AND n.address = sign_read.address AND n.chain_id = p_chain AND n.nonce = p_nonce;
    ELSIF p_takes_open THEN
      SELECT n.nonce, n.state, n.tx_id, n.charges INTO slot_nonce, slot_state, slot_tx, slot_charges FROM nonces n
       WHERE n.tenant_id = p_tenant AND n.address = sign_read.address AND n.chain_id = p_chain AND n.state = 'open'
         AND n.nonce >= COALESCE(p_pending, 0) ORDER BY n.nonce LIMIT 1;
    END IF;
  END IF;
  IF p_key_hash IS NOT NULL THEN
    SELECT i.fingerprint, COALESCE(i.answer, (SELECT t.answer FROM transactions t WHERE t.tenant_id = p_tenant AND t.id = i.tx_id))
      INTO idem_fingerprint, idem_answer FROM idempotency i
     WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route AND i.key_hash = p_key_hash AND i.expires_at > now;
  END IF;
  SELECT x.answer INTO tx_answer FROM transactions x WHERE x.tenant_id = p_tenant AND x.id = p_tx AND x.agent_id = p_agent;
  RETURN NEXT;
END $$;

CREATE FUNCTION lock_agent(p_tenant text, p_agent text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM FROM agents WHERE tenant_id = p_tenant AND id = p_agent FOR UPDATE;
END $$;
COMMENT ON FUNCTION lock_agent IS 'The lock-first path: a statement of its own, so that the read after it sees what it waited for.';

CREATE FUNCTION emit(p_agent text, p_events text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE e json;
BEGIN
  FOR e IN SELECT json_array_elements(p_events::json) LOOP
    IF e->>'mark' IS NOT NULL THEN
      INSERT INTO event_marks AS m (tenant_id, agent_id, mark, at)
      VALUES (current_setting('custody.tenant'), p_agent, e->>'mark', service_now())
      ON CONFLICT (tenant_id, agent_id, mark) DO UPDATE SET at = excluded.at WHERE m.at <= service_now() - interval '1 minute';
      CONTINUE WHEN NOT FOUND;
    END IF;
    PERFORM outbox_append(e->>'event', p_agent, (e->'data')::text);
  END LOOP;
END $$;
COMMENT ON FUNCTION emit IS 'p_events: [{event, data, mark?}]; an event with a mark is emitted at most once a minute.';

CREATE TYPE sign_record AS (
  tx uuid, kind text, status text, to_address text, value text, data text, chain_id bigint, caip2 text, broadcast boolean,
  reference_id text, replaces_tx_id uuid, order_text text, digest bytea, effects text, policy_results text,
  policy_version bigint, nonce bigint, fee text, tx_hash text, signature text, signed_bytes bytea, answer bytea,
  slot_from uuid, slot_state text, slot_address text, slot_charges text,
  spend_assets text[], spend_amounts text[], moved_assets text[], moved_hours timestamptz[], moved_amounts text[],
  hour timestamptz, resolved_at timestamptz, counts_rate boolean, approval uuid, approval_mac bytea, expire_seconds integer,
  principal text, route text, key_hash bytea, fingerprint bytea, idem_answer bytea,
  actor_type text, actor_id text, action text, metadata text, origin text[], events text
);

CREATE FUNCTION sign_write(p_tenant text, p_agent text, p_incarnation uuid, p_epoch integer, p_ledger_version bigint,
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
        tx_hash, signature, signed_bytes, answer, created_at, signed_at, resend_at)
    VALUES (p_tenant, r.tx, p_agent, p_incarnation, r.kind, r.status, r.to_address, r.value::numeric, r.data, r.chain_id, r.caip2,
        r.broadcast, r.reference_id, r.replaces_tx_id, r.order_text, r.digest, r.effects, r.policy_results, r.policy_version,
        r.nonce, r.fee, r.tx_hash, r.signature, r.signed_bytes, r.answer, v_now,
        CASE WHEN r.status = 'signed' THEN v_now END,
        CASE WHEN r.status = 'signed' AND r.broadcast THEN v_now + interval '5 seconds' END);
  ELSE
    -- Claimed and signed in one transaction: one approval can never give two signatures (promise P2).
    UPDATE approvals SET status = 'approved', resolved_at = r.resolved_at, resolved_by = 'manual', resolved_by_user_id = p_claim_user
     WHERE tenant_id = p_tenant AND id = p_claim AND tx_id = r.tx AND status = 'pending' AND digest = r.digest
       AND (expires_at IS NULL OR expires_at > v_now);
    IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
    UPDATE transactions SET status = 'signed', nonce = r.nonce, fee = r.fee, effects = r.effects, policy_results = r.policy_results,
        policy_version = r.policy_version, tx_hash = r.tx_hash, signature = r.signature, signed_bytes = r.signed_bytes,
        replaces_tx_id = r.replaces_tx_id, signed_at = v_now,
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
         AND tx_id = r.slot_from AND state = 'open';
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
COMMENT ON FUNCTION sign_write IS 'The one transaction of design: guard, order, approval, slot, spend, rate, idempotency, audit, events.';

CREATE FUNCTION approval_read(p_tenant text, p_approval uuid, p_tx uuid, p_agent text)
RETURNS TABLE (id uuid, tx_id uuid, agent_id text, status text, digest bytea, expired boolean, kind text, order_text text, requested_at timestamptz,
               mac bytea, incarnation uuid)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT p.id, p.tx_id, p.agent_id, p.status, p.digest,
         p.expires_at IS NOT NULL AND p.expires_at <= service_now(), t.kind, t.order_text, p.requested_at, p.mac, t.incarnation
    FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id
   WHERE p.tenant_id = p_tenant AND (p.id = p_approval OR (p_approval IS NULL AND p.tx_id = p_tx))
     AND (p_agent IS NULL OR p.agent_id = p_agent);
END $$;

CREATE FUNCTION deny_write(p_tenant text, p_agent text, p_approval uuid, p_digest bytea, p_reason text, p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea,
    p_actor_type text, p_actor_id text, p_metadata text, p_origin text[], p_events text, p_resolved_at timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_tx uuid;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The anchor first: deny and approve of one item queue up here, whoever is second finds it resolved.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_key(p_tenant, p_caller_key);
  UPDATE approvals SET status = 'rejected', resolved_at = p_resolved_at, resolved_by = 'manual', reason = p_reason
   WHERE tenant_id = p_tenant AND id = p_approval AND status = 'pending' AND digest = p_digest
     AND (expires_at IS NULL OR expires_at > p_resolved_at) RETURNING tx_id INTO v_tx;
  IF NOT FOUND THEN RETURN 'unclaimed'; END IF;
  UPDATE transactions SET status = 'rejected', status_detail = 'denied' WHERE tenant_id = p_tenant AND id = v_tx AND status = 'pending_approval';
  IF NOT FOUND THEN RAISE EXCEPTION 'approval % is pending but its order is not', p_approval; END IF;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append(p_actor_type, p_actor_id, 'tx.denied', 'transaction', v_tx::text, p_metadata, p_origin);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;

CREATE FUNCTION outcome_write(p_tenant text, p_tx uuid, p_outcome text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  IF p_outcome = 'sent' THEN
    UPDATE transactions SET status = 'broadcast', broadcast_at = service_now(), resend_at = NULL
     WHERE tenant_id = p_tenant AND id = p_tx AND status = 'signed' AND broadcast;
    IF NOT FOUND THEN RETURN 'unchanged'; END IF;
    PERFORM audit_append('system', 'node', 'tx.broadcast', 'transaction', p_tx::text, '{}', p_origin);
  END IF;
  RETURN 'done';
END $$;
COMMENT ON FUNCTION outcome_write IS 'What a node said. A refusal changes nothing: the scheduler tries again, and no word of a node frees spend.';

-- ---------------------------------------------------------------- agents, policies, tenants

CREATE FUNCTION create_agents(p_tenant text, p_caller_key bytea, p_ids text[], p_names text[], p_platform_ids text[],
    p_incarnations uuid[], p_evm text[], p_solana text[], p_key_version integer, p_evm_blobs bytea[], p_solana_blobs bytea[],
    p_head_macs bytea[], p_rule_ids text[], p_rule_types text[], p_rule_enabled boolean[], p_rule_configs text[],
    p_actor_id text, p_origin text[]) RETURNS TABLE (id text, created_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now(); v_created text[];
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_key(p_tenant, p_caller_key);
  WITH made AS (
    INSERT INTO agents AS a (tenant_id, id, name, platform_id, incarnation, evm_address, solana_address, created_at)
    SELECT p_tenant, n.id, n.name, n.platform_id, n.incarnation, n.evm, n.solana, v_now
      FROM unnest(p_ids, p_names, p_platform_ids, p_incarnations, p_evm, p_solana)
        AS n (id, name, platform_id, incarnation, evm, solana) ORDER BY n.id
    ON CONFLICT (tenant_id, id) DO NOTHING RETURNING a.id)
  SELECT array_agg(made.id) INTO v_created FROM made;
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  SELECT p_tenant, 'agent', n.id, w.purpose, p_key_version, w.blob
    FROM unnest(p_ids, p_evm_blobs, p_solana_blobs) AS n (id, evm, solana),
         LATERAL (VALUES ('evm', n.evm), ('solana', n.solana)) AS w (purpose, blob) WHERE n.id = ANY (v_created);
  INSERT INTO policy_heads (tenant_id, agent_id, version, count, mac)
  SELECT p_tenant, n.id, 1, COALESCE(cardinality(p_rule_ids), 0), n.mac
    FROM unnest(p_ids, p_head_macs) AS n (id, mac) WHERE n.id = ANY (v_created);
  INSERT INTO policy_rules (tenant_id, agent_id, position, id, type, enabled, config)
  SELECT p_tenant, a, r.position, r.id, r.type, r.enabled, r.config
    FROM unnest(v_created) AS a, unnest(p_rule_ids, p_rule_types, p_rule_enabled, p_rule_configs)
      WITH ORDINALITY AS r (id, type, enabled, config, position);
  PERFORM audit_append('system', p_actor_id, 'agent.created', 'agent', c, '{}', p_origin) FROM unnest(v_created) AS c;
  RETURN QUERY SELECT c, v_now FROM unnest(v_created) AS c;
END $$;

CREATE FUNCTION agent_anchor(p_tenant text, p_agent text)
RETURNS TABLE (incarnation uuid, token_epoch integer, policy_version bigint, frozen boolean, head_version bigint,
               head_count integer, head_mac bytea, rules text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.policy_version, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL,
         h.version, h.count, h.mac,
         (SELECT json_agg(json_build_array(r.id, r.type, r.enabled, r.config) ORDER BY r.position)::text
            FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent)
    FROM agents a JOIN tenants t ON t.id = a.tenant_id
    LEFT JOIN policy_heads h ON h.tenant_id = a.tenant_id AND h.agent_id = a.id
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;

CREATE FUNCTION replace_policies(p_tenant text, p_agent text, p_incarnation uuid, p_epoch integer, p_version bigint, p_mac bytea,
    p_ids text[], p_types text[], p_enabled boolean[], p_configs text[], p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea,
    p_actor_type text, p_actor_id text, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE agents SET policy_version = p_version, ledger_version = ledger_version + 1
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = p_incarnation AND policy_version = p_version - 1
     AND (p_epoch IS NULL OR token_epoch = p_epoch);
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_key(p_tenant, p_caller_key);
  DELETE FROM policy_rules WHERE tenant_id = p_tenant AND agent_id = p_agent;
  INSERT INTO policy_rules (tenant_id, agent_id, position, id, type, enabled, config)
  SELECT p_tenant, p_agent, r.position, r.id, r.type, r.enabled, r.config
    FROM unnest(p_ids, p_types, p_enabled, p_configs) WITH ORDINALITY AS r (id, type, enabled, config, position);
  INSERT INTO policy_heads (tenant_id, agent_id, version, count, mac) VALUES (p_tenant, p_agent, p_version, cardinality(p_ids), p_mac)
  ON CONFLICT (tenant_id, agent_id) DO UPDATE SET version = excluded.version, count = excluded.count, mac = excluded.mac;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append(p_actor_type, p_actor_id, 'policy.replaced', 'agent', p_agent, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION change_agent(p_tenant text, p_agent text, p_change text, p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_actor_id text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_key(p_tenant, p_caller_key);
  IF p_change = 'delete' THEN
    DELETE FROM agents WHERE tenant_id = p_tenant AND id = p_agent;
  ELSIF p_change = 'revoke_tokens' THEN
    UPDATE agents SET token_epoch = token_epoch + 1, ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  ELSIF p_change <> 'mint_token' THEN
    RAISE EXCEPTION 'unknown change %', p_change;
  END IF;
  IF p_change <> 'mint_token' AND NOT FOUND THEN RETURN 'absent'; END IF;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_actor_id,
    CASE p_change WHEN 'delete' THEN 'agent.deleted' WHEN 'mint_token' THEN 'agent.token_minted' ELSE 'agent.tokens_revoked' END,
    'agent', p_agent, '{}', p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION create_tenant(p_id text, p_name text, p_webhook_url text, p_key_hash_of_tenant bytea, p_prefix text, p_mac bytea,
    p_route text, p_principal text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_actor_id text, p_origin text[],
    p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_id, true);
  INSERT INTO tenants (id, name, webhook_url, created_at) VALUES (p_id, p_name, p_webhook_url, p_now);
  INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at) VALUES (p_id, p_key_hash_of_tenant, p_prefix, p_mac, p_now);
  PERFORM audit_append('system', p_actor_id, 'tenant.created', 'tenant', p_id, '{}', p_origin);
  PERFORM set_config('custody.tenant', 'platform', true);
  IF NOT idempotency_put('platform', p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_actor_id, 'tenant.created', 'tenant', p_id, '{}', p_origin);
END $$;

CREATE FUNCTION delete_tenant(p_id text, p_route text, p_principal text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea,
    p_actor_id text, p_origin text[]) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_id, true);
  -- Children of many agents go in id order, so two stories over several agents never wait for each other.
  PERFORM FROM agents WHERE tenant_id = p_id ORDER BY id FOR UPDATE;
  DELETE FROM tenants WHERE id = p_id;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  PERFORM set_config('custody.tenant', 'platform', true);
  IF NOT idempotency_put('platform', p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_actor_id, 'tenant.deleted', 'tenant', p_id, '{}', p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION config_version(p_tenant text) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN COALESCE((SELECT version FROM tenant_config WHERE tenant_id = p_tenant), 0);
END $$;

CREATE FUNCTION put_config(p_tenant text, p_expected_version bigint, p_document text, p_judging text, p_mac bytea, p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_actor_id text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_key(p_tenant, p_caller_key);
  INSERT INTO tenant_config AS c (tenant_id, version, document, judging, mac)
  VALUES (p_tenant, p_expected_version + 1, p_document, p_judging, p_mac)
  ON CONFLICT (tenant_id) DO UPDATE SET version = excluded.version, document = excluded.document, judging = excluded.judging,
      mac = excluded.mac, changed_at = service_now() WHERE c.version = p_expected_version;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_actor_id, 'tenant.config_changed', 'tenant', p_tenant, '{}', p_origin);
  RETURN 'done';
END $$;

-- ---------------------------------------------------------------- hot reads of the api

CREATE FUNCTION agent_get(p_tenant text, p_agent text)
RETURNS TABLE (id text, name text, platform_id text, evm_address text, solana_address text, created_at timestamptz,
               frozen_at timestamptz, frozen_reason text, incarnation uuid, token_epoch integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.id, a.name, a.platform_id, a.evm_address, a.solana_address, a.created_at, a.frozen_at, a.frozen_reason,
                      a.incarnation, a.token_epoch
    FROM agents a WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;

-- ---------------------------------------------------------------- grants

DO $$
DECLARE f text;
BEGIN
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA public TO custody_definer, custody_api, custody_signer, custody_scheduler, custody_proxy;

GRANT SELECT ON tenants, tenant_keys, tenant_config, agents, policy_heads, policy_rules, transactions, approvals, spend,
  idempotency, audit, outbox, token_keys TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON tenants, tenant_keys, tenant_config, agents, sealed, policy_heads, policy_rules,
  transactions, approvals, spend, rate, nonces, idempotency, event_marks, token_keys, platform_keys TO custody_signer;
GRANT SELECT ON transactions, approvals TO custody_scheduler;

GRANT SELECT ON tenants, agents, transactions, tenant_keys, platform_keys, sealed TO custody_definer;
GRANT UPDATE (resend_at, resends) ON transactions TO custody_definer;
GRANT INSERT ON audit, outbox TO custody_definer;

GRANT EXECUTE ON FUNCTION service_now() TO custody_definer, custody_api, custody_signer, custody_scheduler, custody_proxy;
GRANT EXECUTE ON FUNCTION find_tenant_key(bytea), find_platform_key(bytea), platform_tenants(integer, integer), platform_tenant(text),
  platform_stats(), agent_get(text, text), schema_version() TO custody_api;
GRANT SELECT ON tortoise_migrations TO custody_definer;
GRANT EXECUTE ON FUNCTION claim_unsent(integer), schema_version() TO custody_scheduler;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO custody_signer;
REVOKE EXECUTE ON FUNCTION platform_tenants(integer, integer), platform_tenant(text), platform_stats(), claim_unsent(integer) FROM custody_signer;
GRANT EXECUTE ON FUNCTION audit_append(text, text, text, text, text, text, text[]), outbox_append(text, text, text)
  TO custody_api, custody_scheduler, custody_proxy;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION audit_append(text, text, text, text, text, text, text[]) OWNER TO custody_definer;
ALTER FUNCTION outbox_append(text, text, text) OWNER TO custody_definer;
ALTER FUNCTION find_tenant_key(bytea) OWNER TO custody_definer;
ALTER FUNCTION find_platform_key(bytea) OWNER TO custody_definer;
ALTER FUNCTION platform_tenants(integer, integer) OWNER TO custody_definer;
ALTER FUNCTION platform_tenant(text) OWNER TO custody_definer;
ALTER FUNCTION platform_stats() OWNER TO custody_definer;
ALTER FUNCTION anything_sealed() OWNER TO custody_definer;
ALTER FUNCTION schema_version() OWNER TO custody_definer;
ALTER FUNCTION claim_unsent(integer) OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
