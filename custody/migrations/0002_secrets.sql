-- Secrets of tenants, credential routes, and what the proxy may read and append.

-- ---------------------------------------------------------------- tables

CREATE TABLE secrets (
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id          uuid NOT NULL,
  name        text NOT NULL,
  description text,
  version     integer NOT NULL,
  expires_at  timestamptz,
  created_at  timestamptz NOT NULL,
  rotated_at  timestamptz,
  deleted_at  timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE secrets IS 'What is said of a secret; its value is in sealed, and goes when the secret is deleted.';
CREATE UNIQUE INDEX secrets_name ON secrets (tenant_id, name) WHERE deleted_at IS NULL;
CREATE INDEX secrets_newest ON secrets (tenant_id, created_at DESC) WHERE deleted_at IS NULL;

CREATE TABLE credential_routes (
  tenant_id  text NOT NULL,
  id         uuid NOT NULL,
  secret_id  uuid NOT NULL,
  fields     text NOT NULL,
  priority   integer NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets ON DELETE CASCADE
);
COMMENT ON COLUMN credential_routes.fields IS 'Canonical JSON, under the MAC; the priority beside it is for sorting only.';
CREATE INDEX credential_routes_of_secret ON credential_routes (tenant_id, secret_id);

CREATE TABLE credential_heads (
  tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  version   bigint NOT NULL
);
COMMENT ON TABLE credential_heads IS 'Rises with every change of a secret or route; whoever keeps routes in memory compares it.';

ALTER TABLE sealed DROP CONSTRAINT sealed_owner_kind_check;
ALTER TABLE sealed ADD CONSTRAINT sealed_owner_kind_check CHECK (owner_kind IN ('agent', 'token_key', 'secret'));
ALTER TABLE sealed ADD COLUMN secret_id uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'secret' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets ON DELETE CASCADE;

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['secrets', 'credential_routes', 'credential_heads'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;

-- ---------------------------------------------------------------- who keeps something of a tenant in memory is told

CREATE FUNCTION tell_of_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_changes', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END $$;

CREATE FUNCTION tell_of_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_changes', CASE TG_OP WHEN 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END);
  RETURN NULL;
END $$;

-- A notification makes commits wait for each other, so no trigger names a column that the sign path writes.
CREATE TRIGGER tell AFTER UPDATE OF frozen_at OR DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION tell_of_tenant();
CREATE TRIGGER tell AFTER UPDATE OF token_epoch, frozen_at, incarnation OR DELETE ON agents
  FOR EACH ROW EXECUTE FUNCTION tell_of_part();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON credential_heads FOR EACH ROW EXECUTE FUNCTION tell_of_part();

-- ---------------------------------------------------------------- the signer's actions

CREATE OR REPLACE FUNCTION audit_append(p_actor_type text, p_actor_id text, p_action text, p_resource_type text, p_resource_id text,
                                        p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- The writer is stamped from the session, and what only the signer may claim nobody else can write.
  IF p_action ~ '^(tx|policy|key|agent|tenant|approval|secret|credential_route)\.' AND session_user <> 'custody_signer' THEN
    RAISE EXCEPTION 'role % may not write the audit action %', session_user, p_action;
  END IF;
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  VALUES (current_setting('custody.tenant'), session_user, p_actor_type, p_actor_id, p_action, p_resource_type,
          p_resource_id, p_metadata, p_origin[2], p_origin[3], p_origin[1], service_now());
END $$;

-- ---------------------------------------------------------------- changing secrets and routes

CREATE FUNCTION begin_credential_change(p_tenant text, p_caller_key bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The lock: changes of one tenant's secrets and routes go one after the other, so what is counted or compared after
  -- it stays so. The tenant's row first, because whoever deletes the tenant begins there too.
  PERFORM FROM tenants WHERE id = p_tenant FOR NO KEY UPDATE;
  PERFORM demand_key(p_tenant, p_caller_key);
END $$;

CREATE FUNCTION end_credential_change(p_tenant text, p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea,
    p_answer bytea, p_action text, p_resource_type text, p_resource_id uuid, p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- Begun with the time, so that a tenant that is made again never repeats a version of the one before it.
  INSERT INTO credential_heads AS h (tenant_id, version) VALUES (p_tenant, (extract(epoch FROM service_now()) * 1000000)::bigint)
  ON CONFLICT (tenant_id) DO UPDATE SET version = h.version + 1;
  IF NOT idempotency_put(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, NULL) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append('system', p_principal, p_action, p_resource_type, p_resource_id::text, p_metadata, p_origin);
END $$;

CREATE FUNCTION create_secret(p_tenant text, p_caller_key bytea, p_secret uuid, p_name text, p_description text,
    p_expires_at timestamptz, p_key_version integer, p_blob bytea, p_now timestamptz,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  IF (SELECT count(*) FROM secrets WHERE tenant_id = p_tenant AND deleted_at IS NULL) >= 10000 THEN RETURN 'full'; END IF;
  INSERT INTO secrets (tenant_id, id, name, description, version, expires_at, created_at)
  VALUES (p_tenant, p_secret, p_name, p_description, 1, p_expires_at, p_now);
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  VALUES (p_tenant, 'secret', p_secret::text, 'secret', p_key_version, p_blob);
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, 'secret.created', 'secret',
                                p_secret, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION is_header_route(p_fields text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  -- Canonical JSON: within a text of it every quote has a backslash in front.
  SELECT position('"injectAs":"header"' IN p_fields) > 0
$$;

CREATE FUNCTION secret_read(p_tenant text, p_secret uuid)
RETURNS TABLE (name text, version integer, expires_at timestamptz, blob bytea,
               header_route uuid, header_fields text, header_mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT s.name, s.version, s.expires_at, b.blob, h.id, h.fields, h.mac
    FROM secrets s
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = p_secret::text AND b.purpose = 'secret'
    LEFT JOIN LATERAL (SELECT r.id, r.fields, r.mac FROM credential_routes r
                        WHERE r.tenant_id = p_tenant AND r.secret_id = p_secret AND is_header_route(r.fields) LIMIT 1) h ON true
   WHERE s.tenant_id = p_tenant AND s.id = p_secret AND s.deleted_at IS NULL;
END $$;
COMMENT ON FUNCTION secret_read IS 'A secret that was not deleted, with one route, if there is any, that puts it into a header.';

CREATE FUNCTION rotate_secret(p_tenant text, p_caller_key bytea, p_secret uuid, p_version integer, p_key_version integer,
    p_blob bytea, p_fits_header boolean, p_now timestamptz, p_action text,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  -- A header route that came after the value was looked at: look again.
  IF NOT p_fits_header AND EXISTS (
       SELECT FROM credential_routes r WHERE r.tenant_id = p_tenant AND r.secret_id = p_secret AND is_header_route(r.fields)) THEN
    RETURN 'stale';
  END IF;
  UPDATE secrets SET version = p_version, rotated_at = p_now
   WHERE tenant_id = p_tenant AND id = p_secret AND version = p_version - 1 AND deleted_at IS NULL;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  VALUES (p_tenant, 'secret', p_secret::text, 'secret', p_key_version, p_blob)
  ON CONFLICT (tenant_id, owner_kind, owner, purpose) DO UPDATE SET key_version = excluded.key_version, blob = excluded.blob;
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, p_action, 'secret', p_secret,
                                p_metadata, p_origin);
  RETURN 'done';
END $$;
COMMENT ON FUNCTION rotate_secret IS 'The new value takes the old one''s place; p_fits_header: it was held against a header route.';

CREATE FUNCTION delete_secret(p_tenant text, p_caller_key bytea, p_secret uuid, p_now timestamptz,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  UPDATE secrets SET deleted_at = p_now WHERE tenant_id = p_tenant AND id = p_secret AND deleted_at IS NULL;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  DELETE FROM sealed WHERE tenant_id = p_tenant AND owner_kind = 'secret' AND owner = p_secret::text;
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, 'secret.deleted', 'secret',
                                p_secret, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION create_credential_route(p_tenant text, p_caller_key bytea, p_id uuid, p_secret uuid, p_secret_version integer,
    p_fields text, p_priority integer, p_mac bytea, p_now timestamptz,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  IF NOT EXISTS (SELECT FROM secrets WHERE tenant_id = p_tenant AND id = p_secret AND version = p_secret_version AND deleted_at IS NULL) THEN
    RETURN 'stale';
  END IF;
  IF (SELECT count(*) FROM credential_routes WHERE tenant_id = p_tenant) >= 10000 THEN RETURN 'full'; END IF;
  INSERT INTO credential_routes (tenant_id, id, secret_id, fields, priority, mac, created_at)
  VALUES (p_tenant, p_id, p_secret, p_fields, p_priority, p_mac, p_now);
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, 'credential_route.created',
                                'credential_route', p_id, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION credential_route_read(p_tenant text, p_id uuid)
RETURNS TABLE (secret_id uuid, fields text, mac bytea, created_at timestamptz, deleted boolean, version integer,
               expires_at timestamptz, blob bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.secret_id, r.fields, r.mac, r.created_at, s.deleted_at IS NOT NULL, s.version, s.expires_at, b.blob
    FROM credential_routes r JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = r.secret_id::text AND b.purpose = 'secret'
   WHERE r.tenant_id = p_tenant AND r.id = p_id;
END $$;

CREATE FUNCTION change_credential_route(p_tenant text, p_caller_key bytea, p_id uuid, p_old_mac bytea, p_secret uuid,
    p_secret_version integer, p_fields text, p_priority integer, p_mac bytea,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  -- Deleted or not: a route of a deleted secret can still be changed, its value is gone.
  IF NOT EXISTS (SELECT FROM secrets WHERE tenant_id = p_tenant AND id = p_secret AND version = p_secret_version) THEN
    RETURN 'stale';
  END IF;
  UPDATE credential_routes SET fields = p_fields, priority = p_priority, mac = p_mac
   WHERE tenant_id = p_tenant AND id = p_id AND mac = p_old_mac;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, 'credential_route.changed',
                                'credential_route', p_id, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION delete_credential_route(p_tenant text, p_caller_key bytea, p_id uuid,
    p_principal text, p_route text, p_key_hash bytea, p_fingerprint bytea, p_answer bytea, p_metadata text, p_origin text[]) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_caller_key);
  DELETE FROM credential_routes WHERE tenant_id = p_tenant AND id = p_id;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  PERFORM end_credential_change(p_tenant, p_principal, p_route, p_key_hash, p_fingerprint, p_answer, 'credential_route.deleted',
                                'credential_route', p_id, p_metadata, p_origin);
  RETURN 'done';
END $$;

CREATE FUNCTION secret_lost(p_deleted_at timestamptz, p_expires_at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_deleted_at IS NOT NULL THEN 'deleted' WHEN p_expires_at <= service_now() THEN 'expired' END
$$;
COMMENT ON FUNCTION secret_lost IS 'Why a secret cannot be used, or null.';

CREATE FUNCTION reveal_read(p_tenant text, p_agent text, p_id uuid)
RETURNS TABLE (incarnation uuid, token_epoch integer, frozen boolean, secret_id uuid, fields text, mac bytea,
               lost text, version integer, expires_at timestamptz, blob bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL, r.secret_id, r.fields, r.mac,
         secret_lost(s.deleted_at, s.expires_at), s.version, s.expires_at, b.blob
    FROM agents a JOIN tenants t ON t.id = p_tenant
    LEFT JOIN credential_routes r ON r.tenant_id = p_tenant AND r.id = p_id
    LEFT JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = r.secret_id::text AND b.purpose = 'secret'
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
COMMENT ON FUNCTION reveal_read IS 'No row: no such agent; no fields: no such route. Everything that a reveal is decided on, in one round trip.';

-- ---------------------------------------------------------------- what the proxy asks and says

CREATE FUNCTION proxy_standing(p_tenant text, p_agent text)
RETURNS TABLE (incarnation uuid, token_epoch integer, frozen boolean, credential_version bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL, COALESCE(h.version, 0)
    FROM agents a JOIN tenants t ON t.id = p_tenant LEFT JOIN credential_heads h ON h.tenant_id = p_tenant
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
COMMENT ON FUNCTION proxy_standing IS 'Whether an agent''s tokens hold, and which version its tenant''s routes have. No row: no such agent.';

CREATE FUNCTION proxy_routes(p_tenant text)
RETURNS TABLE (id uuid, secret_id uuid, fields text, secret_name text, secret_version integer, secret_lost text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.id, r.secret_id, r.fields, s.name, s.version, secret_lost(s.deleted_at, s.expires_at)
    FROM credential_routes r JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
   WHERE r.tenant_id = p_tenant ORDER BY r.priority DESC, r.created_at, r.id;
END $$;
COMMENT ON FUNCTION proxy_routes IS 'Every route of a tenant, enabled or not, in the order in which they are tried.';

CREATE FUNCTION proxy_audit(p_tenants text[], p_agents text[], p_resources text[], p_metadata text[], p_request_ids text[],
                            p_addresses text[], p_user_agents text[], p_at timestamptz[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  SELECT n.tenant, session_user, 'agent', n.agent, 'proxy.request', 'upstream', n.resource, n.metadata, n.address, n.user_agent,
         n.request_id, n.at
    FROM unnest(p_tenants, p_agents, p_resources, p_metadata, p_request_ids, p_addresses, p_user_agents, p_at)
      AS n (tenant, agent, resource, metadata, request_id, address, user_agent, at)
$$;
COMMENT ON FUNCTION proxy_audit IS 'The rows of many requests, of any tenants, in one statement; all arrays have the same length.';

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

GRANT SELECT ON secrets, credential_routes TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON secrets, credential_routes, credential_heads TO custody_signer;
-- The proxy reads columns, and of what is sealed nothing.
GRANT SELECT (id, frozen_at) ON tenants TO custody_proxy;
GRANT SELECT (tenant_id, id, incarnation, token_epoch, frozen_at) ON agents TO custody_proxy;
GRANT SELECT (tenant_id, id, name, version, expires_at, deleted_at) ON secrets TO custody_proxy;
GRANT SELECT (tenant_id, id, secret_id, fields, priority, created_at) ON credential_routes TO custody_proxy;
GRANT SELECT (tenant_id, version) ON credential_heads TO custody_proxy;

GRANT EXECUTE ON FUNCTION begin_credential_change, end_credential_change, create_secret, secret_read, is_header_route, rotate_secret,
  delete_secret, create_credential_route, credential_route_read, change_credential_route, delete_credential_route, secret_lost,
  reveal_read TO custody_signer;
GRANT EXECUTE ON FUNCTION proxy_standing, proxy_routes, secret_lost, proxy_audit TO custody_proxy;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION proxy_audit OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
