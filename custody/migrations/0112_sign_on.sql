-- Sign-on: people who come from Google, Discord, X or from a tenant's own identity provider (OIDC, SAML).

CREATE TABLE sso_memberships (
  tenant_id text NOT NULL,
  user_id   uuid NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES memberships ON DELETE CASCADE
);
COMMENT ON TABLE sso_memberships IS
  'Memberships that sign-on made: the groups of the identity provider may change their role, and no other''s.';

-- ---------------------------------------------------------------- a sign-in under way

CREATE TABLE sign_in_requests (
  state_hash bytea PRIMARY KEY,
  document   text NOT NULL,
  opened     boolean NOT NULL DEFAULT false,
  mac        bytea NOT NULL,
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE sign_in_requests IS
  'A browser that was sent to an identity provider: what was asked, for whom, and where it goes afterwards.';
COMMENT ON COLUMN sign_in_requests.opened IS 'The provider has answered: its code is being exchanged, once.';
CREATE INDEX sign_in_requests_due ON sign_in_requests (expires_at);

CREATE TABLE exchange_codes (
  code_hash  bytea PRIMARY KEY,
  document   text NOT NULL,
  mac        bytea NOT NULL,
  session_id uuid REFERENCES sessions ON DELETE CASCADE,
  used_at    timestamptz,
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE exchange_codes IS
  'Who was proven, for the client that holds the code and its verifier. The first try uses it up, right or wrong.';
COMMENT ON COLUMN exchange_codes.session_id IS 'What it began: the session ends when the code is shown again.';
CREATE INDEX exchange_codes_due ON exchange_codes (expires_at);
CREATE INDEX exchange_codes_of_session ON exchange_codes (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE saml_assertions_seen (
  tenant_id      text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  assertion_hash bytea NOT NULL,
  expires_at     timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, assertion_hash)
);
CREATE INDEX saml_assertions_seen_due ON saml_assertions_seen (expires_at);

-- ---------------------------------------------------------------- what tenants configure

CREATE TABLE oidc_providers (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         text NOT NULL,
  document   text NOT NULL,
  place      integer NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN oidc_providers.document IS 'Canonical JSON, under the MAC.';
COMMENT ON COLUMN oidc_providers.place IS 'In the order in which they were given.';

CREATE TABLE saml_configs (
  tenant_id  text PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
  document   text NOT NULL,
  mac        bytea NOT NULL,
  updated_at timestamptz NOT NULL
);

CREATE TABLE sso_domains (
  tenant_id     text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  domain        text NOT NULL,
  sso_required  boolean NOT NULL,
  token         text NOT NULL,
  verified_at   timestamptz,
  checked_at    timestamptz,
  missing_since timestamptz,
  absences      integer NOT NULL DEFAULT 0,
  look_at       timestamptz,
  created_at    timestamptz NOT NULL,
  mac           bytea NOT NULL,
  PRIMARY KEY (tenant_id, domain)
);
COMMENT ON TABLE sso_domains IS 'E-mail domains of tenants, with the text that proves one in the DNS.';
COMMENT ON COLUMN sso_domains.absences IS 'How often since missing_since the DNS said that the record is not there.';
COMMENT ON COLUMN sso_domains.look_at IS 'When the scheduler asks for the record next; null: nobody looks.';
CREATE UNIQUE INDEX sso_domains_verified ON sso_domains (domain) WHERE verified_at IS NOT NULL;
CREATE INDEX sso_domains_due ON sso_domains (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE sign_on_tests (
  tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  provider  text NOT NULL,
  report    text NOT NULL,
  ended_at  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, provider)
);
COMMENT ON TABLE sign_on_tests IS 'The last try of each provider by an administrator; nothing is decided by it.';

CREATE TABLE provider_keys (
  tenant_id   text NOT NULL,
  provider    text NOT NULL,
  jwks_uri    text NOT NULL,
  keys        text,
  previous    text,
  fetched_at  timestamptz,
  replaced_at timestamptz,
  asked_at    timestamptz,
  due_at      timestamptz NOT NULL,
  problem     text,
  mac         bytea NOT NULL,
  tenant_row  text GENERATED ALWAYS AS (NULLIF(tenant_id, 'platform')) STORED REFERENCES tenants ON DELETE CASCADE,
  PRIMARY KEY (tenant_id, provider)
);
COMMENT ON TABLE provider_keys IS
  'Public keys of OIDC issuers, which the scheduler fetches; under `platform` those of the deployment''s own providers.';
COMMENT ON COLUMN provider_keys.keys IS 'JSON Web Key Set; the one before serves an hour longer. Both under the MAC, with the address.';
COMMENT ON COLUMN provider_keys.asked_at IS 'When the scheduler last took it up.';
COMMENT ON COLUMN provider_keys.due_at IS 'When it takes it up again; sooner once a token names a key that is not here.';
COMMENT ON COLUMN provider_keys.problem IS 'Why the last fetch brought no keys, in a word.';
CREATE INDEX provider_keys_due ON provider_keys (due_at);
CREATE INDEX provider_keys_of_tenant ON provider_keys (tenant_row);
