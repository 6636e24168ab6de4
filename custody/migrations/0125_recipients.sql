-- The recipients that a person let an agent's orders reach, for rules of the type new-recipient.

CREATE TABLE recipients (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  kind        text NOT NULL CHECK (kind IN ('paid', 'empowered', 'called')),
  name        text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  mac         bytea NOT NULL,
  noted_at    timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, incarnation, kind, name),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE recipients IS
  'Each under a MAC, and noted with the signature that a person approved; name has the chain before the address.';
CREATE INDEX recipients_newest ON recipients (tenant_id, agent_id, incarnation, kind, noted_at DESC);

ALTER TABLE recipients ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON recipients TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON recipients TO custody_definer USING (true);
GRANT SELECT, INSERT, UPDATE ON recipients TO custody_signer;
