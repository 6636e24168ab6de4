-- Acts of a tenant's administration and of the operator: how each begins, configuration, freezing, figures.

-- ---------------------------------------------------------------- how an act begins

CREATE FUNCTION begin_administration(p_tenant text, p_caller_key bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The lock: changes of one tenant's administration go one after the other, so what is counted or compared after it
  -- stays so. Signing takes no lock on this row, and goes on.
  PERFORM FROM tenants WHERE id = p_tenant FOR NO KEY UPDATE;
  PERFORM demand_key(p_tenant, p_caller_key);
END $$;

CREATE FUNCTION demand_platform_key(p_hash bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM platform_keys WHERE key_hash = p_hash AND revoked_at IS NULL FOR SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'credential revoked' USING ERRCODE = 'CU002'; END IF;
END $$;
COMMENT ON FUNCTION demand_platform_key IS 'As demand_key; its lock makes a key''s revocation wait for what the key still does.';

DROP FUNCTION delete_tenant(text, text, text, bytea, bytea, bytea, text, text[]);
CREATE FUNCTION delete_tenant(p_id text, p_platform_key bytea, p_route text, p_principal text, p_key_hash bytea, p_fingerprint bytea,
    p_answer bytea, p_origin text[]) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_id, true);
  -- Children of many agents go in id order, so two stories over several agents never wait for each other.
  PERFORM FROM agents WHERE tenant_id = p_id ORDER BY id FOR UPDATE;
  PERFORM FROM tenants WHERE id = p_id FOR UPDATE;
  -- Waited for first: the key must hold when the tenant goes, not when its deletion began to wait.
  PERFORM demand_platform_key(p_platform_key);
  DELETE FROM tenants WHERE id = p_id;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  PERFORM set_config('custody.tenant', 'platform', true);
  IF NOT idempotency_put('platform', p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_principal, 'tenant.deleted', 'tenant', p_id, '{}', p_origin);
  RETURN 'done';
END $$;

-- ---------------------------------------------------------------- signed requests

CREATE FUNCTION clear_used_signatures(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- A few at a time, so that no request waits long for what others left. A minute later than it must, for clocks differ.
  DELETE FROM used_signatures WHERE (tenant_id, key_name, signature_hash) IN (
    SELECT tenant_id, key_name, signature_hash FROM used_signatures
     WHERE tenant_id = p_tenant AND expires_at < service_now() - interval '1 minute' LIMIT 10 FOR UPDATE SKIP LOCKED);
  -- Nobody signs with a key that ended; a day later no request that it signed is under way any more.
  DELETE FROM used_signatures WHERE (tenant_id, key_name, signature_hash) IN (
    SELECT p_tenant, u.key_name, u.signature_hash
      FROM (SELECT id::text FROM signing_keys
             WHERE tenant_id = p_tenant AND LEAST(revoked_at, retires_at) < service_now() - interval '24 hours'
            UNION ALL SELECT encode(secret_hash, 'hex') FROM app_secrets
             WHERE tenant_id = p_tenant AND LEAST(revoked_at, retires_at) < service_now() - interval '24 hours'
            UNION ALL SELECT encode(key_hash, 'hex') FROM platform_keys
             WHERE p_tenant = 'platform' AND revoked_at < service_now() - interval '24 hours') AS ended (name)
     CROSS JOIN LATERAL (SELECT key_name, signature_hash FROM used_signatures
                          WHERE tenant_id = p_tenant AND key_name = ended.name LIMIT 10 FOR UPDATE SKIP LOCKED) AS u
     LIMIT 10);
END $$;

CREATE FUNCTION forget_signatures() RETURNS trigger LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF TG_TABLE_NAME = 'signing_keys' THEN
    DELETE FROM used_signatures WHERE tenant_id = OLD.tenant_id AND key_name = OLD.id::text;
  ELSE
    DELETE FROM used_signatures WHERE tenant_id = OLD.tenant_id AND key_name = encode(OLD.secret_hash, 'hex');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER forget AFTER DELETE ON signing_keys FOR EACH ROW EXECUTE FUNCTION forget_signatures();
CREATE TRIGGER forget AFTER DELETE ON app_secrets FOR EACH ROW EXECUTE FUNCTION forget_signatures();

CREATE FUNCTION use_signature(p_tenant text, p_key_name text, p_signature_hash bytea, p_idempotency_hash bytea, p_expires_at timestamptz,
    p_principal text, p_route text, p_key_hash bytea) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_may boolean;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  INSERT INTO used_signatures (tenant_id, key_name, signature_hash, idempotency_hash, expires_at)
  VALUES (p_tenant, p_key_name, p_signature_hash, p_idempotency_hash, COALESCE(p_expires_at, 'infinity'::timestamptz))
  ON CONFLICT (tenant_id, key_name, signature_hash) DO NOTHING;
  v_may := FOUND;
  IF NOT v_may THEN
    -- What was done is only repeated, by its kept answer, which must not end before it is read. What was refused may be
    -- tried again at once; later it would be an order that nobody expects any more.
    SELECT u.idempotency_hash = p_idempotency_hash AND (u.used_at > service_now() - interval '10 seconds' OR EXISTS (
             SELECT FROM idempotency i WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route
                AND i.key_hash = p_key_hash AND i.expires_at > service_now() + interval '1 minute'))
      INTO v_may FROM used_signatures u
     WHERE u.tenant_id = p_tenant AND u.key_name = p_key_name AND u.signature_hash = p_signature_hash;
  END IF;
  PERFORM clear_used_signatures(p_tenant);
  RETURN COALESCE(v_may, false);
END $$;
COMMENT ON FUNCTION use_signature IS 'False: this signature was used before, and this is not its own request again.';

-- ---------------------------------------------------------------- configuration

CREATE FUNCTION config_read(p_tenant text)
RETURNS TABLE (version bigint, judging text, mac bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT COALESCE(c.version, 0), c.judging, c.mac
    FROM (SELECT p_tenant AS id) t LEFT JOIN tenant_config c ON c.tenant_id = t.id;
END $$;

DROP FUNCTION config_version(text);
DROP FUNCTION put_config(text, bigint, text, text, bytea, bytea, text, text, bytea, bytea, bytea, text, text[]);
CREATE FUNCTION put_config(p_tenant text, p_expected_version bigint, p_document text, p_judging text, p_mac bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO tenant_config AS c (tenant_id, version, document, judging, mac)
  VALUES (p_tenant, p_expected_version + 1, p_document, p_judging, p_mac)
  ON CONFLICT (tenant_id) DO UPDATE SET version = excluded.version, document = excluded.document, judging = excluded.judging,
      mac = excluded.mac, changed_at = service_now() WHERE c.version = p_expected_version;
  RETURN FOUND;
END $$;

-- ---------------------------------------------------------------- freezing

CREATE FUNCTION freeze_agent(p_tenant text, p_agent text, p_caller_key bytea, p_frozen_at timestamptz, p_reason text)
RETURNS TABLE (changed boolean, frozen_at timestamptz, frozen_reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The agent's row is what every signature locks first: those under way commit before this does, and whoever comes
  -- after it finds that its guard no longer holds.
  UPDATE agents a SET frozen_at = p_frozen_at, frozen_reason = p_reason
   WHERE a.tenant_id = p_tenant AND a.id = p_agent AND (a.frozen_at IS NULL) <> (p_frozen_at IS NULL);
  changed := FOUND;
  PERFORM demand_key(p_tenant, p_caller_key);
  RETURN QUERY SELECT changed, a.frozen_at, a.frozen_reason FROM agents a WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
COMMENT ON FUNCTION freeze_agent IS 'Or unfreezes it, without a time. What is frozen keeps its first time and reason. No row: no such agent.';

CREATE FUNCTION freeze_tenant(p_tenant text, p_caller_key bytea, p_frozen_at timestamptz, p_reason text)
RETURNS TABLE (changed boolean, frozen_at timestamptz, frozen_reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_administration(p_tenant, p_caller_key);
  UPDATE tenants t SET frozen_at = p_frozen_at, frozen_reason = p_reason
   WHERE t.id = p_tenant AND (t.frozen_at IS NULL) <> (p_frozen_at IS NULL);
  changed := FOUND;
  RETURN QUERY SELECT changed, t.frozen_at, t.frozen_reason FROM tenants t WHERE t.id = p_tenant;
END $$;

CREATE FUNCTION await_signatures(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- In the order of whoever deletes the tenant, so that the two never wait for each other.
  PERFORM FROM agents WHERE tenant_id = p_tenant ORDER BY id FOR SHARE;
END $$;
COMMENT ON FUNCTION await_signatures IS 'Returns when every order that looked at the tenant before now is written or given up.';

-- ---------------------------------------------------------------- idempotency figures

CREATE FUNCTION add_idempotency_counts(p_counts text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE c record;
BEGIN
  -- In one order for everybody, so that two processes never wait for each other.
  FOR c IN SELECT x.* FROM json_to_recordset(p_counts::json) AS x (
      tenant text, observed bigint, reserved bigint, completed bigint, replayed bigint, conflicts bigint, in_flight_conflicts bigint,
      suppressed_auth_responses bigint, invalid_keys bigint, store_errors bigint, skipped_unsafe_context bigint,
      released_on_error bigint) ORDER BY x.tenant LOOP
    PERFORM set_config('custody.tenant', c.tenant, true);
    BEGIN
      INSERT INTO idempotency_counts AS i VALUES (c.tenant, service_now(), service_now(), COALESCE(c.observed, 0), COALESCE(c.reserved, 0),
        COALESCE(c.completed, 0), COALESCE(c.replayed, 0), COALESCE(c.conflicts, 0), COALESCE(c.in_flight_conflicts, 0),
        COALESCE(c.suppressed_auth_responses, 0), COALESCE(c.invalid_keys, 0), COALESCE(c.store_errors, 0),
        COALESCE(c.skipped_unsafe_context, 0), COALESCE(c.released_on_error, 0))
      ON CONFLICT (tenant_id) DO UPDATE SET last_seen_at = excluded.last_seen_at,
        observed = i.observed + excluded.observed, reserved = i.reserved + excluded.reserved,
        completed = i.completed + excluded.completed, replayed = i.replayed + excluded.replayed,
        conflicts = i.conflicts + excluded.conflicts, in_flight_conflicts = i.in_flight_conflicts + excluded.in_flight_conflicts,
        suppressed_auth_responses = i.suppressed_auth_responses + excluded.suppressed_auth_responses,
        invalid_keys = i.invalid_keys + excluded.invalid_keys, store_errors = i.store_errors + excluded.store_errors,
        skipped_unsafe_context = i.skipped_unsafe_context + excluded.skipped_unsafe_context,
        released_on_error = i.released_on_error + excluded.released_on_error;
    EXCEPTION WHEN foreign_key_violation THEN
      NULL; -- the tenant was deleted meanwhile
    END;
  END LOOP;
END $$;
COMMENT ON FUNCTION add_idempotency_counts IS '[{tenant, <counter>: n, ...}]: what one process counted, of any tenants, in one statement.';

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

GRANT EXECUTE ON FUNCTION begin_administration, demand_platform_key, delete_tenant, clear_used_signatures, forget_signatures, use_signature,
  config_read, put_config, freeze_agent, freeze_tenant, await_signatures TO custody_signer;
GRANT EXECUTE ON FUNCTION add_idempotency_counts TO custody_api;
