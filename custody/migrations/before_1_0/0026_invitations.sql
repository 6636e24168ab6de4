-- Invitations into tenants, by address.

CREATE TABLE invitations (
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id          uuid NOT NULL,
  token_hash  bytea NOT NULL UNIQUE,
  email       text NOT NULL,
  role        text NOT NULL CHECK (role IN ('admin', 'developer', 'billing', 'viewer', 'member')),
  status      text NOT NULL CHECK (status IN ('pending', 'accepted', 'revoked', 'expired')),
  accepted_by uuid,
  ended_at    timestamptz,
  created_at  timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  mac         bytea NOT NULL,
  PRIMARY KEY (tenant_id, id),
  CHECK ((status = 'pending') = (ended_at IS NULL)),
  CHECK ((status = 'accepted') = (accepted_by IS NOT NULL))
);
COMMENT ON TABLE invitations IS 'Who may join a tenant, by an address and a token that is kept as its hash.';
COMMENT ON COLUMN invitations.status IS
  'A pending one whose time is up counts as expired; it is noted when another one takes its place.';
COMMENT ON COLUMN invitations.ended_at IS 'When it was accepted, revoked or replaced.';
CREATE UNIQUE INDEX invitations_pending ON invitations (tenant_id, email) WHERE status = 'pending';
CREATE INDEX invitations_newest ON invitations (tenant_id, created_at DESC, id);
CREATE INDEX invitations_due ON invitations (expires_at);

INSERT INTO retention (what, relation, old) VALUES
  -- Listed for ninety days, so that people find out what became of one.
  ('ended invitations', 'invitations', $$r.expires_at < $1 - interval '90 days'$$);

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON invitations TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON invitations TO custody_definer USING (true);
CREATE POLICY of_identity ON invitations TO custody_identity
  USING (tenant_id = current_setting('custody.tenant'));
GRANT SELECT (tenant_id, id, email, role, status, accepted_by, ended_at, created_at, expires_at)
  ON invitations TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON invitations TO custody_identity;
GRANT SELECT, DELETE, UPDATE (expires_at) ON invitations TO custody_definer;
