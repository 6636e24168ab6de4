-- Sign-on: people who come from Google, Discord, X or from a tenant's own identity provider (OIDC, SAML).

-- ---------------------------------------------------------------- persons

ALTER TABLE users
  ADD COLUMN image           text,
  ADD COLUMN profile_email   text,
  ADD COLUMN custom_metadata text NOT NULL DEFAULT '{}',
  ADD COLUMN updated_at      timestamptz;
COMMENT ON COLUMN users.profile_email IS
  'As a provider said it, only to be shown: nobody signs in with it, and nothing is decided by it.';
COMMENT ON COLUMN users.updated_at IS 'Null: never changed since it was made.';

ALTER TABLE identities
  DROP CONSTRAINT identities_kind_check,
  ADD CONSTRAINT identities_kind_check CHECK (kind IN
    ('wallet', 'contract', 'email', 'solana', 'google', 'discord', 'twitter', 'oidc', 'saml')),
  ADD COLUMN id         uuid NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN tenant_id  text REFERENCES tenants ON DELETE CASCADE,
  ADD COLUMN verified   boolean NOT NULL DEFAULT true,
  ADD COLUMN blocked_at timestamptz;
COMMENT ON COLUMN identities.tenant_id IS
  'Of a tenant''s identity provider: the identity goes with the tenant, so nobody inherits it under the same name.';
COMMENT ON COLUMN identities.verified IS 'False: an address that the operator named and nobody has proven.';
COMMENT ON COLUMN identities.blocked_at IS 'Its person was removed from the tenant: sign-on does not bring them back.';
CREATE UNIQUE INDEX identities_by_id ON identities (id);
CREATE INDEX identities_of_tenant ON identities (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX identities_by_subject ON identities (lower(subject)) WHERE kind IN ('wallet', 'contract');

CREATE TABLE sso_memberships (
  tenant_id text NOT NULL,
  user_id   uuid NOT NULL,
  mac       bytea NOT NULL,
  PRIMARY KEY (tenant_id, user_id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES memberships ON DELETE CASCADE
);
COMMENT ON TABLE sso_memberships IS
  'Memberships that sign-on made: the groups of the identity provider may change their role, and no other''s.';

ALTER TABLE sessions
  ADD COLUMN bound_tenant text,
  ADD COLUMN bound_until  timestamptz;
COMMENT ON COLUMN sessions.bound_tenant IS
  'Of a session that a tenant''s sign-on began: it stays in that tenant. Under the MAC, as its end is.';

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

-- By which tenants the name of a client secret's variable could be meant.
CREATE INDEX tenants_by_variable ON tenants (regexp_replace(upper(id COLLATE "C"), '[^A-Z0-9_]', '_', 'g'));

INSERT INTO retention (what, relation, old) VALUES
  ('sign-ins under way', 'sign_in_requests', $$r.expires_at < $1$$),
  ('exchange codes', 'exchange_codes', $$r.expires_at < $1 - interval '15 minutes'$$),
  ('seen SAML assertions', 'saml_assertions_seen', $$r.expires_at < $1$$);

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['sso_memberships', 'saml_assertions_seen', 'oidc_providers', 'saml_configs', 'sso_domains',
                           'sign_on_tests'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
    EXECUTE format('CREATE POLICY of_identity ON %I TO custody_identity
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
  END LOOP;
END $$;
GRANT SELECT (tenant_id, id, document, place, created_at, updated_at) ON oidc_providers TO custody_api;
GRANT SELECT (tenant_id, document, updated_at) ON saml_configs TO custody_api;
GRANT SELECT (tenant_id, domain, sso_required, token, verified_at, checked_at, missing_since, created_at)
  ON sso_domains TO custody_api;
GRANT SELECT ON sign_on_tests TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON sso_memberships, sign_in_requests, exchange_codes, saml_assertions_seen,
  oidc_providers, saml_configs, sso_domains, sign_on_tests, provider_keys TO custody_identity;
GRANT SELECT ON sso_memberships, sign_in_requests, exchange_codes, saml_assertions_seen, oidc_providers, saml_configs,
  sso_domains, sign_on_tests, provider_keys TO custody_definer;
GRANT DELETE ON sign_in_requests, exchange_codes, saml_assertions_seen TO custody_definer;
-- What the claims of the scheduler change: when something was last looked at.
GRANT UPDATE (asked_at, due_at) ON provider_keys TO custody_definer;
GRANT UPDATE (look_at) ON sso_domains TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (expires_at) ON sign_in_requests, exchange_codes, saml_assertions_seen TO custody_definer;
