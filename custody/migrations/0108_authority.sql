-- Who else must agree before a wallet signs: signers and key quorums of agents, sealed as one set an agent, and for the
-- rule `approval-quorum` the keys of approvers, their votes, and the operator's way out when keys are lost.

CREATE TABLE signers (
  tenant_id      text NOT NULL,
  id             uuid NOT NULL,
  agent_id       text NOT NULL,
  signer_type    text NOT NULL,
  subject_type   text NOT NULL,
  subject_id     text NOT NULL,
  key_type       text NOT NULL CHECK (key_type IN ('hmac', 'p256')),
  public_key     bytea,
  address        text,
  chain_family   text,
  label          text,
  permissions    text NOT NULL,
  policy_ids     text NOT NULL,
  metadata       text NOT NULL DEFAULT '{}',
  has_credential boolean NOT NULL,
  status         text NOT NULL CHECK (status IN ('active', 'paused', 'revoked')),
  created_at     timestamptz NOT NULL DEFAULT service_now(),
  updated_at     timestamptz NOT NULL DEFAULT service_now(),
  revoked_at     timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE signers IS
  'Who else may authorise orders of an agent. Those that are not revoked are in the set that its authority head seals.';
COMMENT ON COLUMN signers.public_key IS 'P-256: the canonical SPKI, 91 bytes, so that one key has one spelling.';
COMMENT ON COLUMN signers.permissions IS 'JSON array of words, sorted.';
COMMENT ON COLUMN signers.policy_ids IS 'JSON array of rule ids, as given.';
CREATE INDEX signers_of_agent ON signers (tenant_id, agent_id, created_at DESC);

CREATE TABLE key_quorums (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  agent_id    text NOT NULL,
  name        text NOT NULL,
  threshold   integer NOT NULL,
  members     text NOT NULL,
  children    text NOT NULL,
  permissions text NOT NULL,
  metadata    text NOT NULL DEFAULT '{}',
  status      text NOT NULL CHECK (status IN ('active', 'paused', 'revoked')),
  created_at  timestamptz NOT NULL DEFAULT service_now(),
  updated_at  timestamptz NOT NULL DEFAULT service_now(),
  revoked_at  timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE key_quorums IS 'How many of which signers must agree; in the same sealed set.';
COMMENT ON COLUMN key_quorums.members IS 'JSON array of signer ids, as given.';
COMMENT ON COLUMN key_quorums.children IS 'JSON array of ids of member quorums, as given.';
CREATE INDEX key_quorums_of_agent ON key_quorums (tenant_id, agent_id, created_at DESC);

CREATE TABLE authority_heads (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  version   bigint NOT NULL,
  count     integer NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, agent_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE authority_heads IS 'Seals all living signers and quorums of an agent, under the agent''s authority_version.';

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
