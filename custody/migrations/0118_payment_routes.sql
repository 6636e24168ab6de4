-- Payment routes: which requests the proxy may pay for, how much, and to whom.

CREATE TABLE payment_routes (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         uuid NOT NULL,
  fields     text NOT NULL,
  priority   integer NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN payment_routes.fields IS
  'Canonical JSON, under the MAC; the priority beside it is for sorting only.';

ALTER TABLE payment_routes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON payment_routes TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON payment_routes TO custody_definer USING (true);
GRANT SELECT ON payment_routes TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON payment_routes TO custody_signer;
GRANT SELECT (tenant_id, id, fields, priority, created_at) ON payment_routes TO custody_proxy;
GRANT SELECT ON payment_routes TO custody_definer;
