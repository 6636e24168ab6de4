-- People as the operator sees them: the ids of their wallets in the operator's own system, and what their fees came to.

CREATE TABLE wallet_external_ids (
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  external_id text NOT NULL,
  user_id     uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mac         bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, external_id),
  CONSTRAINT one_external_id UNIQUE (tenant_id, user_id)
);
COMMENT ON TABLE wallet_external_ids IS
  'What the operator of a tenant calls a person''s wallet elsewhere. Written once: no row is ever changed.';
CREATE INDEX wallet_external_ids_of_user ON wallet_external_ids (user_id);

ALTER TABLE wallet_external_ids ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON wallet_external_ids TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON wallet_external_ids TO custody_definer USING (true);
CREATE POLICY of_identity ON wallet_external_ids TO custody_identity
  USING (tenant_id = current_setting('custody.tenant'));
GRANT SELECT (tenant_id, external_id, user_id, created_at) ON wallet_external_ids TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON wallet_external_ids TO custody_identity;
GRANT SELECT ON wallet_external_ids TO custody_definer;

-- By what a person is found.
CREATE INDEX factors_by_phone ON factors (subject) WHERE kind = 'sms';
CREATE INDEX users_by_profile_email ON users (lower(profile_email)) WHERE profile_email IS NOT NULL;
-- A contract's subject is `<chainId>:<address>`.
CREATE INDEX identities_by_contract ON identities (lower(split_part(subject, ':', 2))) WHERE kind = 'contract';
-- A tenant's identity provider names its people by a JSON list whose last text is their id there.
CREATE INDEX identities_by_account ON identities (reverse(subject) text_pattern_ops) WHERE tenant_id IS NOT NULL;
CREATE INDEX memberships_newest ON memberships (tenant_id, created_at DESC, user_id);

ALTER TABLE transactions ADD COLUMN fee_paid numeric(78, 0);
COMMENT ON COLUMN transactions.fee_paid IS
  'What the network took, in the smallest unit, as a node said; null while it is not final, and where no node said it.';
