-- People (users, identities, memberships, sessions, factors, devices) and what a tenant's administration keeps
-- (app clients, request-signing keys, idempotency counters).
--
-- What belongs to a person has no tenant: such a table is granted to the signer alone, and read by the api through the
-- listed functions, which take the person whose token was proven. Every row that proves something carries a MAC.

-- ---------------------------------------------------------------- persons

CREATE TABLE users (
  id             uuid PRIMARY KEY,
  name           text,
  created_at     timestamptz NOT NULL,
  deactivated_at timestamptz,
  factors_changed_at timestamptz
);
COMMENT ON COLUMN users.factors_changed_at IS 'What was shown before is no second factor any more, in no session.';

CREATE TABLE identities (
  kind       text NOT NULL CHECK (kind IN ('wallet', 'contract', 'email')),
  subject    text NOT NULL,
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE identities IS 'What a person signs in with: a wallet (its own signature), a contract wallet (the word of a node), an address.';
CREATE INDEX identities_of_user ON identities (user_id);

CREATE TABLE memberships (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'viewer', 'member')),
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);
COMMENT ON COLUMN memberships.created_at IS 'Under the MAC: who comes back is another member, and no token of before is his.';

ALTER TABLE tenants ADD COLUMN made_by uuid;
COMMENT ON COLUMN tenants.made_by IS 'The person who asked for it: it counts against his limit for as long as it lives.';
CREATE INDEX tenants_made_by ON tenants (made_by);

CREATE TABLE sessions (
  id         uuid PRIMARY KEY,
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  provider   text NOT NULL,
  amr        text[] NOT NULL,
  mfa_at     timestamptz,
  mac        bytea NOT NULL,
  generation integer NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL,
  used_at    timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz,
  ip_address text,
  user_agent text
);
COMMENT ON COLUMN sessions.generation IS 'Of its refresh token: an older one that is shown again ends the session.';
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_due ON sessions (LEAST(revoked_at, expires_at));

-- ---------------------------------------------------------------- proofs that live for minutes

CREATE TABLE sign_in_nonces (
  nonce_hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_nonces_due ON sign_in_nonces (expires_at);

CREATE TABLE sign_in_codes (
  kind       text NOT NULL CHECK (kind IN ('email', 'sms')),
  subject    text NOT NULL,
  mac        bytea NOT NULL,
  tries      integer NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE sign_in_codes IS 'One living code for each address or person; only its MAC is kept.';
CREATE INDEX sign_in_codes_due ON sign_in_codes (expires_at);

CREATE TABLE challenges (
  challenge_hash bytea PRIMARY KEY,
  purpose    text NOT NULL CHECK (purpose IN ('register', 'sign_in', 'step_up')),
  user_id    uuid REFERENCES users ON DELETE CASCADE,
  session_id uuid REFERENCES sessions ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX challenges_due ON challenges (expires_at);
-- For the sessions that are cleared away.
CREATE INDEX challenges_of_session ON challenges (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE attempts (
  subject  text PRIMARY KEY,
  count    integer NOT NULL,
  ends_at  timestamptz NOT NULL
);
COMMENT ON TABLE attempts IS 'Guesses in the present window of a subject, counted before each is looked at.';
CREATE INDEX attempts_due ON attempts (ends_at);

CREATE TABLE device_codes (
  device_hash bytea PRIMARY KEY,
  user_code   text NOT NULL UNIQUE,
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  client_id   text,
  native_kind text CHECK (native_kind IN ('bundle', 'package')),
  native_id   text,
  status      text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'consumed')),
  user_id     uuid REFERENCES users ON DELETE CASCADE,
  session_id  uuid REFERENCES sessions ON DELETE CASCADE,
  mac         bytea NOT NULL,
  interval_seconds integer NOT NULL DEFAULT 5,
  polled_at   timestamptz,
  created_at  timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  ip_address  text,
  user_agent  text
);
COMMENT ON COLUMN device_codes.session_id IS 'In which it was decided: when it is ended, other than by signing out, what it let in is turned away.';
CREATE INDEX device_codes_due ON device_codes (expires_at);
CREATE INDEX device_codes_of_session ON device_codes (session_id) WHERE session_id IS NOT NULL;

-- ---------------------------------------------------------------- second factors

CREATE TABLE factors (
  user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind         text NOT NULL CHECK (kind IN ('totp', 'sms')),
  subject      text,
  mac          bytea NOT NULL,
  last_step    bigint NOT NULL DEFAULT 0,
  confirmed_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, kind)
);
COMMENT ON COLUMN factors.subject IS 'The phone number; of an authenticator nothing, its seed is in sealed.';
COMMENT ON COLUMN factors.last_step IS 'The newest time step whose code was used; no code works twice.';

CREATE TABLE enrolments (
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind       text NOT NULL CHECK (kind IN ('totp', 'sms')),
  subject    text,
  blob       bytea,
  mac        bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, kind)
);
COMMENT ON TABLE enrolments IS 'Factors that were begun and not yet confirmed by a code.';
CREATE INDEX enrolments_due ON enrolments (expires_at);

CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mac     bytea NOT NULL,
  used_at timestamptz,
  PRIMARY KEY (user_id, mac)
);

CREATE TABLE passkeys (
  id            uuid PRIMARY KEY,
  user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  credential_id bytea NOT NULL UNIQUE,
  public_key    bytea NOT NULL,
  sign_count    bigint NOT NULL,
  transports    text[] NOT NULL,
  name          text NOT NULL,
  mac           bytea NOT NULL,
  created_at    timestamptz NOT NULL,
  used_at       timestamptz
);
CREATE INDEX passkeys_of_user ON passkeys (user_id);

-- ---------------------------------------------------------------- administration of a tenant

CREATE TABLE app_clients (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         text NOT NULL,
  document   text NOT NULL,
  enabled    boolean NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN app_clients.document IS 'Canonical JSON, under the MAC together with enabled.';

CREATE TABLE app_secrets (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  client_id   text NOT NULL,
  secret_hash bytea NOT NULL UNIQUE,
  prefix      text NOT NULL,
  mac         bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  retires_at  timestamptz,
  revoked_at  timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, client_id) REFERENCES app_clients ON DELETE CASCADE
);
COMMENT ON COLUMN app_secrets.retires_at IS 'Null: active. Set when a newer one supersedes it: it serves until then.';

CREATE TABLE signing_keys (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         uuid NOT NULL,
  prefix     text NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  retires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE signing_keys IS 'Keys that sign requests; the secret itself is in sealed.';

CREATE TABLE used_signatures (
  tenant_id  text NOT NULL,
  key_name   text NOT NULL,
  signature_hash bytea NOT NULL,
  idempotency_hash bytea NOT NULL,
  used_at    timestamptz NOT NULL DEFAULT service_now(),
  expires_at timestamptz NOT NULL,
  tenant_row text GENERATED ALWAYS AS (NULLIF(tenant_id, 'platform')) STORED REFERENCES tenants ON DELETE CASCADE,
  PRIMARY KEY (tenant_id, key_name, signature_hash)
);
COMMENT ON COLUMN used_signatures.expires_at IS 'infinity: the request named no time, so its signature lives as long as its key.';
CREATE INDEX used_signatures_due ON used_signatures (tenant_id, expires_at);
CREATE INDEX used_signatures_of_tenant ON used_signatures (tenant_row);

CREATE TABLE idempotency_counts (
  tenant_id         text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  window_started_at timestamptz NOT NULL,
  last_seen_at      timestamptz NOT NULL,
  observed bigint NOT NULL DEFAULT 0, reserved bigint NOT NULL DEFAULT 0, completed bigint NOT NULL DEFAULT 0,
  replayed bigint NOT NULL DEFAULT 0, conflicts bigint NOT NULL DEFAULT 0, in_flight_conflicts bigint NOT NULL DEFAULT 0,
  suppressed_auth_responses bigint NOT NULL DEFAULT 0, invalid_keys bigint NOT NULL DEFAULT 0,
  store_errors bigint NOT NULL DEFAULT 0, skipped_unsafe_context bigint NOT NULL DEFAULT 0,
  released_on_error bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE idempotency_counts IS 'Counted in the api and added every second: figures, never part of an act.';

ALTER TABLE platform_keys ADD COLUMN id uuid, ADD COLUMN name text;

ALTER TABLE sealed DROP CONSTRAINT sealed_owner_kind_check;
ALTER TABLE sealed ADD CONSTRAINT sealed_owner_kind_check CHECK (owner_kind IN ('agent', 'token_key', 'secret', 'user', 'signing_key'));
ALTER TABLE sealed ADD COLUMN user_id uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'user' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;
ALTER TABLE sealed ADD COLUMN signing_key_id uuid
  GENERATED ALWAYS AS (CASE WHEN owner_kind = 'signing_key' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (tenant_id, signing_key_id) REFERENCES signing_keys ON DELETE CASCADE;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['memberships', 'app_clients', 'app_secrets', 'signing_keys', 'used_signatures', 'idempotency_counts'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;

-- ---------------------------------------------------------------- who acts, in audit rows and in the acting transaction

CREATE OR REPLACE FUNCTION audit_append(p_actor_type text, p_actor_id text, p_action text, p_resource_type text, p_resource_id text,
                                        p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- The writer is stamped from the session, and what only the signer may claim nobody else can write.
  IF p_action ~ ('^(tx|policy|key|agent|tenant|approval|secret|credential_route|user|session|membership|factor|passkey|device'
                 '|app_client|app_secret|signing_key|platform_key)\.') AND session_user <> 'custody_signer' THEN
    RAISE EXCEPTION 'role % may not write the audit action %', session_user, p_action;
  END IF;
  -- A person acts as `user:<id>`, whatever story it is told in. An agent may be called anything, so its name tells nothing.
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  VALUES (current_setting('custody.tenant'), session_user,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN 'user' ELSE p_actor_type END,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN substr(p_actor_id, 6) ELSE p_actor_id END,
          p_action, p_resource_type, p_resource_id, p_metadata, p_origin[2], p_origin[3], p_origin[1], service_now());
END $$;

DROP FUNCTION demand_key(text, bytea);
CREATE FUNCTION demand_key(p_tenant text, p_key bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- Raised, not returned: nothing of a story may stay that a revoked credential began.
  IF p_key IS NULL THEN RETURN; END IF;
  IF octet_length(p_key) = 32 THEN
    -- The hash of a tenant's key, or of an app client's secret.
    IF EXISTS (SELECT FROM tenant_keys WHERE tenant_id = p_tenant AND key_hash = p_key AND revoked_at IS NULL) THEN RETURN; END IF;
    IF EXISTS (SELECT FROM app_secrets s JOIN app_clients c ON c.tenant_id = s.tenant_id AND c.id = s.client_id
                WHERE s.tenant_id = p_tenant AND s.secret_hash = p_key AND s.revoked_at IS NULL AND c.enabled
                  AND (s.retires_at IS NULL OR s.retires_at > service_now())) THEN RETURN; END IF;
  ELSIF EXISTS (SELECT FROM sessions s JOIN users u ON u.id = s.user_id
                  JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = s.user_id
                 WHERE s.id = encode(substr(p_key, 1, 16), 'hex')::uuid AND m.mac = substr(p_key, 17)
                   AND s.revoked_at IS NULL AND s.expires_at > service_now() AND u.deactivated_at IS NULL) THEN
    -- A session, and the membership it acts by: a role that changed has another MAC.
    RETURN;
  END IF;
  RAISE EXCEPTION 'credential revoked' USING ERRCODE = 'CU002';
END $$;

CREATE FUNCTION count_attempt(p_subject text, p_limit integer, p_seconds integer) RETURNS integer
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now(); v_counted boolean; v_left integer;
BEGIN
  INSERT INTO attempts AS a (subject, count, ends_at) VALUES (p_subject, 1, v_now + make_interval(secs => p_seconds))
  ON CONFLICT (subject) DO UPDATE
     SET count = CASE WHEN a.ends_at <= v_now THEN 1 ELSE a.count + 1 END,
         ends_at = CASE WHEN a.ends_at <= v_now THEN v_now + make_interval(secs => p_seconds) ELSE a.ends_at END
   WHERE a.count < p_limit OR a.ends_at <= v_now;
  v_counted := FOUND;
  -- Whoever counts clears away what others left; never many at once, and last, for whoever holds a row waits for none.
  DELETE FROM attempts WHERE subject IN (SELECT subject FROM attempts WHERE ends_at < v_now LIMIT 20 FOR UPDATE SKIP LOCKED);
  IF v_counted THEN RETURN 0; END IF;
  SELECT GREATEST(1, ceil(extract(epoch FROM a.ends_at - v_now)))::integer INTO v_left FROM attempts a WHERE a.subject = p_subject;
  RETURN COALESCE(v_left, 1);
END $$;
COMMENT ON FUNCTION count_attempt IS '0: this guess may be made; else the seconds until the next may.';

-- ---------------------------------------------------------------- across tenants: the listed set grows

CREATE FUNCTION memberships_of(p_user uuid)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user ORDER BY m.created_at, m.tenant_id LIMIT 1000
$$;
COMMENT ON FUNCTION memberships_of IS 'The oldest first, and no more than a page can show.';

CREATE FUNCTION membership_of(p_user uuid, p_tenant text)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user AND m.tenant_id = p_tenant
$$;

CREATE FUNCTION home_of(p_user uuid, p_own text)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user ORDER BY m.tenant_id <> p_own, m.created_at, m.tenant_id LIMIT 1
$$;
COMMENT ON FUNCTION home_of IS 'Where a person comes to who names no tenant: his own, else the oldest.';

CREATE FUNCTION tenants_made_by(p_user uuid) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM tenants t WHERE t.made_by = p_user
$$;

CREATE FUNCTION mfa_methods(p_user uuid) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT COALESCE(array_agg(x.kind ORDER BY x.kind), '{}') FROM (
    SELECT f.kind FROM factors f WHERE f.user_id = p_user
    UNION SELECT 'passkey' FROM passkeys p WHERE p.user_id = p_user
    UNION SELECT 'recovery' FROM recovery_codes r WHERE r.user_id = p_user AND r.used_at IS NULL) AS x (kind)
$$;

CREATE FUNCTION mfa_counts_from(p_shown timestamptz, p_changed timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_changed IS NULL THEN 0 WHEN p_shown >= p_changed THEN floor(extract(epoch FROM p_changed))::bigint END
$$;
COMMENT ON FUNCTION mfa_counts_from IS
  'The earliest `mfa_at` (Unix seconds) that a session''s token may show; null: none, until the session shows a factor again.';

CREATE FUNCTION session_standing(p_session uuid, p_user uuid, p_tenant text, p_issued_at bigint)
RETURNS TABLE (role text, methods text[], mfa_counts_from bigint, judging text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.role, mfa_methods(p_user), mfa_counts_from(s.mfa_at, u.factors_changed_at), c.judging
    FROM sessions s JOIN users u ON u.id = s.user_id
    JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = s.user_id
    LEFT JOIN tenant_config c ON c.tenant_id = p_tenant
   WHERE s.id = p_session AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > service_now() AND u.deactivated_at IS NULL
     AND m.created_at < to_timestamp(p_issued_at + 1)
$$;
COMMENT ON FUNCTION session_standing IS
  'No row: the session ended, or its person is no longer of this tenant, or became so again after the token was made.';

CREATE FUNCTION session_proof(p_session uuid, p_user uuid, p_tenant text, p_issued_at bigint)
RETURNS TABLE (role text, member_since timestamptz, membership_mac bytea, methods text[], mfa_counts_from bigint,
               config_version bigint, judging text, judging_mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.role, m.created_at, m.mac, mfa_methods(p_user), mfa_counts_from(s.mfa_at, u.factors_changed_at), COALESCE(c.version, 0), c.judging, c.mac
    FROM sessions s JOIN users u ON u.id = s.user_id
    JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = s.user_id
    LEFT JOIN tenant_config c ON c.tenant_id = p_tenant
   WHERE s.id = p_session AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > service_now() AND u.deactivated_at IS NULL
     AND m.created_at < to_timestamp(p_issued_at + 1)
$$;
COMMENT ON FUNCTION session_proof IS 'The same with its MACs, for the signer.';

CREATE FUNCTION user_profile(p_user uuid)
RETURNS TABLE (id uuid, name text, created_at timestamptz, email text, wallet text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT u.id, u.name, u.created_at,
         (SELECT i.subject FROM identities i WHERE i.user_id = p_user AND i.kind = 'email' ORDER BY i.created_at LIMIT 1),
         -- A contract's subject names its chain too, for the same address is another contract on another chain.
         (SELECT substring(i.subject FROM '[^:]+$') FROM identities i
           WHERE i.user_id = p_user AND i.kind IN ('wallet', 'contract') ORDER BY i.created_at LIMIT 1)
    FROM users u WHERE u.id = p_user
$$;

CREATE FUNCTION user_sessions(p_user uuid)
RETURNS TABLE (id uuid, tenant_id text, provider text, amr text[], mfa_at timestamptz, created_at timestamptz, used_at timestamptz,
               expires_at timestamptz, ip_address text, user_agent text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.provider, s.amr, s.mfa_at, s.created_at, s.used_at, s.expires_at, s.ip_address, s.user_agent
    FROM sessions s WHERE s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > service_now()
   ORDER BY s.used_at DESC LIMIT 1000
$$;
COMMENT ON FUNCTION user_sessions IS 'Living sessions, the last used first.';

CREATE FUNCTION user_passkeys(p_user uuid)
RETURNS TABLE (id uuid, name text, transports text[], created_at timestamptz, used_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT p.id, p.name, p.transports, p.created_at, p.used_at FROM passkeys p WHERE p.user_id = p_user ORDER BY p.created_at DESC
$$;

CREATE FUNCTION user_factors(p_user uuid) RETURNS TABLE (kind text, subject text, confirmed_at timestamptz, recovery_left bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT f.kind, f.subject, f.confirmed_at, NULL::bigint FROM factors f WHERE f.user_id = p_user
  UNION ALL
  SELECT 'recovery', NULL, NULL, count(*) FROM recovery_codes r WHERE r.user_id = p_user AND r.used_at IS NULL HAVING count(*) > 0
$$;

CREATE FUNCTION find_app_secret(p_hash bytea)
RETURNS TABLE (tenant_id text, client_id text, prefix text, mac bytea, document text, enabled boolean, client_mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.tenant_id, s.client_id, s.prefix, s.mac, c.document, c.enabled, c.mac
    FROM app_secrets s JOIN app_clients c ON c.tenant_id = s.tenant_id AND c.id = s.client_id
   WHERE s.secret_hash = p_hash AND s.revoked_at IS NULL AND (s.retires_at IS NULL OR s.retires_at > service_now())
$$;

-- ---------------------------------------------------------------- changing an agent

CREATE OR REPLACE FUNCTION change_agent(p_tenant text, p_agent text, p_change text, p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_actor_id text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_there boolean := true;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  IF p_change NOT IN ('delete', 'revoke_tokens', 'mint_token') THEN RAISE EXCEPTION 'unknown change %', p_change; END IF;
  IF p_change <> 'mint_token' THEN
    -- Waited for first: the credential must hold when the change is made, not when it began to wait.
    PERFORM FROM agents WHERE tenant_id = p_tenant AND id = p_agent FOR UPDATE;
    v_there := FOUND;
  END IF;
  PERFORM demand_key(p_tenant, p_caller_key);
  IF NOT v_there THEN RETURN 'absent'; END IF;
  IF p_change = 'delete' THEN
    DELETE FROM agents WHERE tenant_id = p_tenant AND id = p_agent;
  ELSIF p_change = 'revoke_tokens' THEN
    UPDATE agents SET token_epoch = token_epoch + 1, ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  END IF;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_actor_id,
    CASE p_change WHEN 'delete' THEN 'agent.deleted' WHEN 'mint_token' THEN 'agent.token_minted' ELSE 'agent.tokens_revoked' END,
    'agent', p_agent, '{}', p_origin);
  RETURN 'done';
END $$;

-- ---------------------------------------------------------------- a tenant may have an owner

DROP FUNCTION create_tenant(text, text, text, bytea, text, bytea, text, text, bytea, bytea, bytea, text, text[], timestamptz);
CREATE FUNCTION create_tenant(p_id text, p_name text, p_webhook_url text, p_key_hash_of_tenant bytea, p_prefix text, p_mac bytea,
    p_owner uuid, p_membership_mac bytea, p_home text, p_standing bytea,
    p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_principal text, p_origin text[],
    p_now timestamptz, p_limit integer) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_made_by uuid := CASE WHEN p_standing IS NOT NULL THEN p_owner END;
BEGIN
  IF v_made_by IS NOT NULL THEN
    -- The lock: of two that one person asks for at once, the second one sees the first.
    PERFORM FROM users WHERE id = v_made_by FOR NO KEY UPDATE;
    IF tenants_made_by(v_made_by) >= p_limit THEN RETURN 'too_many'; END IF;
  END IF;
  PERFORM set_config('custody.tenant', p_id, true);
  INSERT INTO tenants (id, name, webhook_url, created_at, made_by) VALUES (p_id, p_name, p_webhook_url, p_now, v_made_by);
  INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at) VALUES (p_id, p_key_hash_of_tenant, p_prefix, p_mac, p_now);
  IF p_owner IS NOT NULL THEN
    INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) VALUES (p_id, p_owner, 'owner', p_membership_mac, p_now);
  END IF;
  PERFORM audit_append('system', p_principal, 'tenant.created', 'tenant', p_id, '{}', p_origin);
  PERFORM set_config('custody.tenant', p_home, true);
  PERFORM demand_key(p_home, p_standing);
  IF NOT idempotency_put(p_home, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_principal, 'tenant.created', 'tenant', p_id, '{}', p_origin);
  RETURN 'done';
END $$;
COMMENT ON FUNCTION create_tenant IS 'p_home: where it was asked, the operator''s log or the tenant of the person who asks and becomes the owner.';

-- ---------------------------------------------------------------- decisions by a person

DROP FUNCTION deny_write(text, text, uuid, bytea, text, bytea, text, text, bytea, bytea, bytea, text, text, text, text[], text, timestamptz);
CREATE FUNCTION deny_write(p_tenant text, p_agent text, p_approval uuid, p_digest bytea, p_reason text, p_caller_key bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea,
    p_actor_type text, p_actor_id text, p_metadata text, p_origin text[], p_events text, p_resolved_at timestamptz,
    p_user text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_tx uuid;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The anchor first: deny and approve of one item queue up here, whoever is second finds it resolved.
  UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = p_tenant AND id = p_agent;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_key(p_tenant, p_caller_key);
  UPDATE approvals SET status = 'rejected', resolved_at = p_resolved_at, resolved_by = 'manual', resolved_by_user_id = p_user,
         reason = p_reason
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

GRANT SELECT, INSERT, UPDATE, DELETE ON users, identities, memberships, sessions, sign_in_nonces, sign_in_codes, challenges, attempts,
  device_codes, factors, enrolments, recovery_codes, passkeys, app_clients, app_secrets, signing_keys, used_signatures TO custody_signer;
GRANT SELECT (tenant_id, user_id, role, created_at) ON memberships TO custody_api;
GRANT SELECT (tenant_id, id, document, enabled, created_at, updated_at) ON app_clients TO custody_api;
GRANT SELECT (tenant_id, id, client_id, prefix, created_at, retires_at, revoked_at) ON app_secrets TO custody_api;
GRANT SELECT (tenant_id, id, prefix, created_at, retires_at, revoked_at) ON signing_keys TO custody_api;
GRANT SELECT, INSERT, UPDATE ON idempotency_counts TO custody_api;
GRANT SELECT ON users, identities, memberships, sessions, factors, recovery_codes, passkeys, app_clients, app_secrets, tenant_config
  TO custody_definer;

GRANT EXECUTE ON FUNCTION demand_key, count_attempt, membership_of, home_of, tenants_made_by, mfa_methods, session_proof,
  user_profile, find_app_secret, deny_write, create_tenant TO custody_signer;
GRANT EXECUTE ON FUNCTION memberships_of, membership_of, session_standing, user_profile, user_sessions, user_passkeys, user_factors,
  find_app_secret, mfa_methods TO custody_api;
GRANT EXECUTE ON FUNCTION mfa_counts_from TO custody_definer;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION memberships_of OWNER TO custody_definer;
ALTER FUNCTION membership_of OWNER TO custody_definer;
ALTER FUNCTION home_of OWNER TO custody_definer;
ALTER FUNCTION tenants_made_by OWNER TO custody_definer;
ALTER FUNCTION mfa_methods OWNER TO custody_definer;
ALTER FUNCTION session_standing OWNER TO custody_definer;
ALTER FUNCTION session_proof OWNER TO custody_definer;
ALTER FUNCTION user_profile OWNER TO custody_definer;
ALTER FUNCTION user_sessions OWNER TO custody_definer;
ALTER FUNCTION user_passkeys OWNER TO custody_definer;
ALTER FUNCTION user_factors OWNER TO custody_definer;
ALTER FUNCTION find_app_secret OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
