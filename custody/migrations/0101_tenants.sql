-- Tenants, their keys and configuration, idempotency keys, and the operator's keys.
--
-- Tenant first in every key. No process role owns a table; each is granted only what it needs (0114_access.sql).

CREATE TABLE tenants (
  id                     text PRIMARY KEY CHECK (id <> 'platform'),
  name                   text NOT NULL,
  webhook_url            text,
  frozen_at              timestamptz,
  frozen_reason          text,
  created_at             timestamptz NOT NULL DEFAULT service_now(),
  made_by                uuid,
  -- The operator freezes a tenant beside its people: each ends only their own freeze.
  tenant_frozen_at       timestamptz,
  tenant_frozen_reason   text,
  operator_frozen_at     timestamptz,
  operator_frozen_reason text,
  -- Everything that signs or lets out looks at frozen_at alone; so nobody who froze can be forgotten there.
  CONSTRAINT tenants_frozen CHECK (
    frozen_at IS NOT NULL OR (tenant_frozen_at IS NULL AND operator_frozen_at IS NULL))
);
COMMENT ON COLUMN tenants.frozen_at IS 'The first freeze that holds, the operator''s or the tenant''s own.';
COMMENT ON COLUMN tenants.made_by IS
  'The person who asked for it: it counts against their limit for as long as it lives.';
CREATE INDEX tenants_made_by ON tenants (made_by);
-- By which tenants the name of a client secret's variable could be meant.
CREATE INDEX tenants_by_variable ON tenants (regexp_replace(upper(id COLLATE "C"), '[^A-Z0-9_]', '_', 'g'));
-- A notification makes commits wait for each other, so no trigger names a column that the sign path writes.
CREATE TRIGGER tell AFTER UPDATE OF frozen_at OR DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION tell_of_tenant();
CREATE TRIGGER forget_outbox AFTER DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION forget_outbox();

CREATE TABLE tenant_keys (
  tenant_id    text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  key_hash     bytea NOT NULL UNIQUE,
  prefix       text NOT NULL,
  mac          bytea NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT service_now(),
  revoked_at   timestamptz,
  id           uuid NOT NULL DEFAULT gen_random_uuid(),
  name         text,
  retires_at   timestamptz,
  last_used_at timestamptz,
  PRIMARY KEY (tenant_id, key_hash),
  UNIQUE (tenant_id, id)
);
COMMENT ON COLUMN tenant_keys.retires_at IS 'Null: active. Set when a newer one supersedes it: it serves until then.';
COMMENT ON COLUMN tenant_keys.last_used_at IS 'At most a minute behind; noted when identity is asked about the key.';
CREATE INDEX tenant_keys_ended ON tenant_keys (LEAST(revoked_at, retires_at));

CREATE TABLE tenant_config (
  tenant_id  text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  version    bigint NOT NULL,
  document   text NOT NULL,
  judging    text NOT NULL,
  mac        bytea NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT service_now()
);
COMMENT ON COLUMN tenant_config.judging IS 'The part that the signer judges by, under its MAC.';

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

CREATE TABLE idempotency_counts (
  tenant_id                 text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  window_started_at         timestamptz NOT NULL,
  last_seen_at              timestamptz NOT NULL,
  observed                  bigint NOT NULL DEFAULT 0,
  reserved                  bigint NOT NULL DEFAULT 0,
  completed                 bigint NOT NULL DEFAULT 0,
  replayed                  bigint NOT NULL DEFAULT 0,
  conflicts                 bigint NOT NULL DEFAULT 0,
  in_flight_conflicts       bigint NOT NULL DEFAULT 0,
  suppressed_auth_responses bigint NOT NULL DEFAULT 0,
  invalid_keys              bigint NOT NULL DEFAULT 0,
  store_errors              bigint NOT NULL DEFAULT 0,
  skipped_unsafe_context    bigint NOT NULL DEFAULT 0,
  released_on_error         bigint NOT NULL DEFAULT 0,
  CONSTRAINT idempotency_counts_bounds CHECK (
    LEAST(window_started_at, last_seen_at) >= '1970-01-01 00:00:00+00'
    AND GREATEST(window_started_at, last_seen_at) < '10000-01-01 00:00:00+00'
    AND LEAST(observed, reserved, completed, replayed, conflicts, in_flight_conflicts, suppressed_auth_responses,
              invalid_keys, store_errors, skipped_unsafe_context, released_on_error) >= 0
    AND GREATEST(observed, reserved, completed, replayed, conflicts, in_flight_conflicts, suppressed_auth_responses,
                 invalid_keys, store_errors, skipped_unsafe_context, released_on_error) <= 1000000000000000)
);
COMMENT ON TABLE idempotency_counts IS 'Counted in the api and added every second: figures, never part of an act.';

CREATE TABLE platform_keys (
  key_hash   bytea PRIMARY KEY,
  prefix     text NOT NULL,
  scopes     text[],
  from_file  boolean NOT NULL DEFAULT false,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  revoked_at timestamptz,
  id         uuid,
  name       text
);
COMMENT ON COLUMN platform_keys.scopes IS 'null: every scope.';
