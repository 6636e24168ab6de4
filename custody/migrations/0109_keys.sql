-- Versions of the master key, everything that is sealed with it or with identity's key, public halves of token keys,
-- and the one-time sessions by which private keys are imported, whose private halves are sealed too.

CREATE TABLE key_versions (
  version              integer PRIMARY KEY CHECK (version > 0),
  fingerprint          bytea NOT NULL,
  identity_fingerprint bytea NOT NULL,
  added_at             timestamptz NOT NULL DEFAULT service_now(),
  begun_at             timestamptz,
  retired_at           timestamptz,
  CONSTRAINT retired_after_begun CHECK (retired_at IS NULL OR begun_at IS NOT NULL)
);
COMMENT ON TABLE key_versions IS
  'Which versions there are, never what they are: the newest that was begun seals, on every host.';
COMMENT ON COLUMN key_versions.fingerprint IS 'By it two master key files show that they mean the same key.';
COMMENT ON COLUMN key_versions.identity_fingerprint IS 'The same for the key that is derived from this version for identity.';
COMMENT ON COLUMN key_versions.retired_at IS 'Nothing was sealed with it any more; nothing may ever be again.';

CREATE TABLE import_sessions (
  tenant_id    text NOT NULL,
  id           uuid NOT NULL,
  agent_id     text NOT NULL,
  incarnation  uuid NOT NULL,
  chain        text NOT NULL CHECK (chain IN ('evm', 'solana')),
  user_id      uuid,
  wallet_index smallint NOT NULL DEFAULT 0,
  app_client   text,
  expires_at   timestamptz NOT NULL,
  failures     smallint NOT NULL DEFAULT 0,
  used_at      timestamptz,
  created_at   timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE import_sessions IS
  'One-time keys to which clients seal a private key; the private half is sealed to all that a session is bound to.';
COMMENT ON COLUMN import_sessions.failures IS 'Envelopes that did not open, and wrong agents: five end the session.';
CREATE INDEX import_sessions_open ON import_sessions (tenant_id, expires_at) WHERE used_at IS NULL;
CREATE INDEX import_sessions_of_agent ON import_sessions (tenant_id, agent_id);
CREATE INDEX import_sessions_age ON import_sessions (expires_at);

CREATE TABLE sealed (
  tenant_id         text NOT NULL,
  owner_kind        text NOT NULL CHECK (owner_kind IN ('agent', 'token_key', 'secret', 'signer', 'import_session')),
  owner             text NOT NULL,
  purpose           text NOT NULL,
  key_version       integer NOT NULL,
  blob              bytea NOT NULL,
  agent_id          text GENERATED ALWAYS AS (CASE WHEN owner_kind = 'agent' THEN owner END) STORED,
  secret_id         uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'secret' THEN owner::uuid END) STORED,
  signer_id         uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'signer' THEN owner::uuid END) STORED,
  import_session_id uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'import_session' THEN owner::uuid END) STORED,
  PRIMARY KEY (tenant_id, owner_kind, owner, purpose),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, signer_id) REFERENCES signers ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, import_session_id) REFERENCES import_sessions ON DELETE CASCADE
);
COMMENT ON TABLE sealed IS 'Under the master key: wallets, secrets, the signer''s own keys.';
CREATE INDEX sealed_of_signer ON sealed (tenant_id, signer_id) WHERE signer_id IS NOT NULL;
CREATE INDEX sealed_of_import_session ON sealed (tenant_id, import_session_id) WHERE import_session_id IS NOT NULL;
CREATE TRIGGER refuse_retired_key BEFORE INSERT OR UPDATE OF blob ON sealed
  FOR EACH ROW EXECUTE FUNCTION refuse_retired_key();

CREATE TABLE identity_sealed (
  tenant_id      text NOT NULL,
  owner_kind     text NOT NULL CHECK (owner_kind IN ('session_key', 'user', 'signing_key', 'webhook')),
  owner          text NOT NULL,
  purpose        text NOT NULL,
  key_version    integer NOT NULL,
  blob           bytea NOT NULL,
  user_id        uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'user' THEN owner::uuid END) STORED
    REFERENCES users ON DELETE CASCADE,
  signing_key_id uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'signing_key' THEN owner::uuid END) STORED,
  webhook_id     uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'webhook' THEN owner::uuid END) STORED,
  ends_at        timestamptz,
  PRIMARY KEY (tenant_id, owner_kind, owner, purpose),
  FOREIGN KEY (tenant_id, signing_key_id) REFERENCES signing_keys ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhook_endpoints ON DELETE CASCADE
);
COMMENT ON TABLE identity_sealed IS
  'Under the key that the signer derives for identity: seeds of authenticators, secrets of webhooks and signed requests.';
COMMENT ON COLUMN identity_sealed.ends_at IS 'Of a former secret of a webhook: until then it signs beside the newest.';
CREATE INDEX identity_sealed_ends ON identity_sealed (ends_at) WHERE ends_at IS NOT NULL;
CREATE TRIGGER refuse_retired_key BEFORE INSERT OR UPDATE OF blob ON identity_sealed
  FOR EACH ROW EXECUTE FUNCTION refuse_retired_key();

CREATE TABLE token_keys (
  kid        text PRIMARY KEY,
  public_key bytea NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  retired_at timestamptz
);
COMMENT ON TABLE token_keys IS 'Public halves of what agents'' tokens are signed with.';
COMMENT ON COLUMN token_keys.mac IS 'Of identity''s key, made by the signer: by it identity knows these keys.';

CREATE TABLE session_keys (
  kid        text PRIMARY KEY,
  public_key bytea NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  retired_at timestamptz
);
COMMENT ON TABLE session_keys IS 'Public halves of what people''s tokens are signed with; private halves are identity''s.';
