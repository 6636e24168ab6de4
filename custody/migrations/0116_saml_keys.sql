-- Keys of a tenant that its SAML provider may encrypt assertions for. The private half is sealed by identity.

CREATE TABLE saml_keys (
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id          uuid NOT NULL,
  certificate text NOT NULL,
  created_at  timestamptz NOT NULL,
  ends_at     timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE saml_keys IS
  'Certificates that a SAML provider may encrypt for; the newest stands in the metadata. Nothing is proven by a key.';
COMMENT ON COLUMN saml_keys.certificate IS 'PEM.';
COMMENT ON COLUMN saml_keys.ends_at IS 'Of one that a newer one followed: until then it still opens.';
CREATE INDEX saml_keys_end ON saml_keys (ends_at) WHERE ends_at IS NOT NULL;

ALTER TABLE saml_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON saml_keys TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON saml_keys TO custody_definer USING (true);
CREATE POLICY of_identity ON saml_keys TO custody_identity USING (tenant_id = current_setting('custody.tenant'));
GRANT SELECT ON saml_keys TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON saml_keys TO custody_identity;
GRANT SELECT, DELETE ON saml_keys TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (ends_at) ON saml_keys TO custody_definer;

ALTER TABLE identity_sealed DROP CONSTRAINT identity_sealed_owner_kind_check;
ALTER TABLE identity_sealed ADD CONSTRAINT identity_sealed_owner_kind_check
  CHECK (owner_kind IN ('session_key', 'user', 'signing_key', 'webhook', 'saml_key'));
ALTER TABLE identity_sealed ADD COLUMN saml_key_id uuid
  GENERATED ALWAYS AS (CASE WHEN owner_kind = 'saml_key' THEN owner::uuid END) STORED;
ALTER TABLE identity_sealed ADD FOREIGN KEY (tenant_id, saml_key_id) REFERENCES saml_keys ON DELETE CASCADE;
COMMENT ON TABLE identity_sealed IS
  'Under the key that the signer derives for identity: seeds of authenticators, secrets of webhooks and signed requests, keys for SAML assertions.';

INSERT INTO retention (what, relation, old) VALUES ('former SAML keys', 'saml_keys', $$r.ends_at < $1$$);
