-- Imports of private keys: one-time sessions, whose private halves are sealed, and the keys that they replace.

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

ALTER TABLE sealed DROP CONSTRAINT sealed_owner_kind_check;
ALTER TABLE sealed ADD CONSTRAINT sealed_owner_kind_check
  CHECK (owner_kind IN ('agent', 'token_key', 'secret', 'signer', 'import_session'));
ALTER TABLE sealed ADD COLUMN import_session_id uuid
  GENERATED ALWAYS AS (CASE WHEN owner_kind = 'import_session' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (tenant_id, import_session_id) REFERENCES import_sessions ON DELETE CASCADE;
CREATE INDEX sealed_of_import_session ON sealed (tenant_id, import_session_id) WHERE import_session_id IS NOT NULL;

INSERT INTO retention (what, relation, old) VALUES
  ('import sessions', 'import_sessions', $$r.expires_at < $1 - interval '1 hour'$$);

ALTER TABLE import_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON import_sessions TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON import_sessions TO custody_definer USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON import_sessions TO custody_signer;
GRANT SELECT, DELETE ON import_sessions TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (expires_at) ON import_sessions TO custody_definer;
CREATE INDEX import_sessions_age ON import_sessions (expires_at);
