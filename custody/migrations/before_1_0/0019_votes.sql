-- The rule `approval-quorum`: approvers' keys, their votes, and the operator's way out when keys are lost.

CREATE TABLE approver_keys (
  tenant_id     text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id            uuid NOT NULL,
  user_id       uuid NOT NULL,
  name          text NOT NULL,
  rp_id         text NOT NULL,
  credential_id text NOT NULL,
  public_key    bytea NOT NULL,
  fingerprint   text NOT NULL,
  sign_count    bigint NOT NULL DEFAULT 0,
  mac           bytea NOT NULL,
  created_at    timestamptz NOT NULL,
  revoked_at    timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE approver_keys IS
  'Keys by which people vote on orders, each under a MAC with whether it was revoked. A rule pins them by fingerprint.';
COMMENT ON COLUMN approver_keys.public_key IS 'P-256: the canonical SPKI, 91 bytes, so that one key has one spelling.';
COMMENT ON COLUMN approver_keys.fingerprint IS 'SHA-256 of public_key, in hex. One key is registered once in a tenant.';
COMMENT ON COLUMN approver_keys.sign_count IS 'Of the authenticator, as last shown; not under the MAC.';
CREATE UNIQUE INDEX approver_keys_fingerprint ON approver_keys (tenant_id, fingerprint) WHERE revoked_at IS NULL;
CREATE INDEX approver_keys_of_tenant ON approver_keys (tenant_id, created_at DESC, id);

CREATE TABLE approval_votes (
  tenant_id          text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  kind               text NOT NULL CHECK (kind IN ('approval', 'policies')),
  subject            text NOT NULL,
  user_id            uuid NOT NULL,
  key_id             uuid NOT NULL,
  authenticator_data bytea NOT NULL,
  client_data        bytea NOT NULL,
  signature          bytea NOT NULL,
  until              timestamptz NOT NULL,
  voted_at           timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, kind, subject, user_id)
);
COMMENT ON TABLE approval_votes IS
  'Votes with the whole evidence: the signer counts what the evidence proves, and believes no other column.';
COMMENT ON COLUMN approval_votes.subject IS 'The approval; or the agent whose policies would be replaced.';
COMMENT ON COLUMN approval_votes.until IS 'When the vote ends, as its evidence says.';

CREATE TABLE quorum_breaks (
  tenant_id      text NOT NULL,
  agent_id       text NOT NULL,
  policy_version bigint NOT NULL,
  effective_at   timestamptz NOT NULL,
  mac            bytea NOT NULL,
  created_at     timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE quorum_breaks IS
  'The operator disables the approval quorums of one version of an agent''s rules, from a day after it was said.';

ALTER TABLE transactions ADD COLUMN votes_text text;
COMMENT ON COLUMN transactions.votes_text IS 'JSON: the votes under which the order was signed; under its receipt''s MAC.';

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['approver_keys', 'approval_votes', 'quorum_breaks'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;
GRANT SELECT ON approver_keys, approval_votes TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON approver_keys, approval_votes, quorum_breaks TO custody_signer;
GRANT SELECT ON approver_keys, approval_votes, quorum_breaks TO custody_definer;
