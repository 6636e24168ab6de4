-- Secrets of tenants and the credential routes that use them.

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
CREATE INDEX secrets_deleted ON secrets (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX secrets_expired ON secrets (expires_at) WHERE expires_at IS NOT NULL;

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
COMMENT ON COLUMN credential_routes.fields IS
  'Canonical JSON, under the MAC; the priority beside it is for sorting only.';
CREATE INDEX credential_routes_of_secret ON credential_routes (tenant_id, secret_id);

CREATE TABLE credential_heads (
  tenant_id text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  version   bigint NOT NULL
);
COMMENT ON TABLE credential_heads IS
  'Rises with every change of a secret or route; a process that keeps routes in memory compares it.';
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON credential_heads
  FOR EACH ROW EXECUTE FUNCTION tell_of_part();
