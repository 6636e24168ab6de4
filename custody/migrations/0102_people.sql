-- People (users, identities, memberships, invitations, sessions, factors, devices) and the credentials of a tenant's
-- programs (app clients, request-signing keys).
--
-- What belongs to a person has no tenant: such a table is granted to the signer alone, and read by the api through the
-- listed functions, which take the person whose token was proven. Every row that proves something carries a MAC.

-- ---------------------------------------------------------------- persons

CREATE TABLE users (
  id                 uuid PRIMARY KEY,
  name               text,
  created_at         timestamptz NOT NULL,
  deactivated_at     timestamptz,
  factors_changed_at timestamptz,
  image              text,
  profile_email      text,
  custom_metadata    text NOT NULL DEFAULT '{}',
  updated_at         timestamptz
);
COMMENT ON COLUMN users.factors_changed_at IS 'What was shown before is no second factor any more, in no session.';
COMMENT ON COLUMN users.profile_email IS
  'As a provider said it, only to be shown: nobody signs in with it, and nothing is decided by it.';
COMMENT ON COLUMN users.updated_at IS 'Null: never changed since it was made.';
CREATE INDEX users_newest ON users (created_at DESC, id);
CREATE INDEX users_by_profile_email ON users (lower(profile_email)) WHERE profile_email IS NOT NULL;

CREATE TABLE identities (
  kind       text NOT NULL CHECK (kind IN
    ('wallet', 'contract', 'email', 'solana', 'google', 'discord', 'twitter', 'oidc', 'saml')),
  subject    text NOT NULL,
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  id         uuid NOT NULL DEFAULT gen_random_uuid(),
  tenant_id  text REFERENCES tenants ON DELETE CASCADE,
  verified   boolean NOT NULL DEFAULT true,
  blocked_at timestamptz,
  PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE identities IS
  'What a person signs in with: a wallet (its own signature), a contract wallet (the word of a node), an address.';
COMMENT ON COLUMN identities.tenant_id IS
  'Of a tenant''s identity provider: the identity goes with the tenant, so nobody inherits it under the same name.';
COMMENT ON COLUMN identities.verified IS 'False: an address that the operator named and nobody has proven.';
COMMENT ON COLUMN identities.blocked_at IS 'Its person was removed from the tenant: sign-on does not bring them back.';
CREATE INDEX identities_of_user ON identities (user_id);
CREATE UNIQUE INDEX identities_by_id ON identities (id);
CREATE INDEX identities_of_tenant ON identities (tenant_id) WHERE tenant_id IS NOT NULL;
CREATE INDEX identities_by_subject ON identities (lower(subject)) WHERE kind IN ('wallet', 'contract');
-- A contract's subject is `<chainId>:<address>`.
CREATE INDEX identities_by_contract ON identities (lower(split_part(subject, ':', 2))) WHERE kind = 'contract';
-- A tenant's identity provider names its people by a JSON list whose last text is their id there.
CREATE INDEX identities_by_account ON identities (reverse(subject) text_pattern_ops) WHERE tenant_id IS NOT NULL;

CREATE TABLE memberships (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'viewer', 'member')),
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
);
CREATE INDEX memberships_of_user ON memberships (user_id);
CREATE INDEX memberships_newest ON memberships (tenant_id, created_at DESC, user_id);
COMMENT ON COLUMN memberships.created_at IS
  'Under the MAC: a person who comes back is another member, and no token of before is theirs.';

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

CREATE TABLE sessions (
  id           uuid PRIMARY KEY,
  user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  tenant_id    text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  provider     text NOT NULL,
  amr          text[] NOT NULL,
  mfa_at       timestamptz,
  mac          bytea NOT NULL,
  generation   integer NOT NULL DEFAULT 1,
  created_at   timestamptz NOT NULL,
  used_at      timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL,
  revoked_at   timestamptz,
  ip_address   text,
  user_agent   text,
  client_id    text,
  origin       text,
  bound_tenant text,
  bound_until  timestamptz
);
COMMENT ON COLUMN sessions.generation IS 'Of its refresh token: an older one that is shown again ends the session.';
COMMENT ON COLUMN sessions.client_id IS
  'The app client of its tenant at whose page it began, under the MAC. It lives as long as that is enabled.';
COMMENT ON COLUMN sessions.origin IS 'That page''s origin, under the MAC.';
COMMENT ON COLUMN sessions.bound_tenant IS
  'Of a session that a tenant''s sign-on began: it stays in that tenant. Under the MAC, as its end is.';
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_due ON sessions (LEAST(revoked_at, expires_at));

-- ---------------------------------------------------------------- proofs that live for minutes

CREATE TABLE sign_in_nonces (
  nonce_hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_nonces_due ON sign_in_nonces (expires_at);

CREATE TABLE sign_in_codes (
  kind       text NOT NULL CHECK (kind IN ('email', 'sms')),
  subject    text NOT NULL,
  mac        bytea NOT NULL,
  tries      integer NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (kind, subject)
);
COMMENT ON TABLE sign_in_codes IS 'One living code for each address or person; only its MAC is kept.';
CREATE INDEX sign_in_codes_due ON sign_in_codes (expires_at);

CREATE TABLE challenges (
  challenge_hash bytea PRIMARY KEY,
  purpose        text NOT NULL CHECK (purpose IN ('register', 'sign_in', 'step_up')),
  user_id        uuid REFERENCES users ON DELETE CASCADE,
  session_id     uuid REFERENCES sessions ON DELETE CASCADE,
  expires_at     timestamptz NOT NULL
);
CREATE INDEX challenges_due ON challenges (expires_at);
-- For the sessions that are cleared away.
CREATE INDEX challenges_of_session ON challenges (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE attempts (
  subject text PRIMARY KEY,
  count   integer NOT NULL,
  ends_at timestamptz NOT NULL
);
COMMENT ON TABLE attempts IS 'Guesses in the present window of a subject, counted before each is looked at.';
CREATE INDEX attempts_due ON attempts (ends_at);

CREATE TABLE device_codes (
  device_hash      bytea PRIMARY KEY,
  user_code        text NOT NULL UNIQUE,
  -- No foreign key: a code for a tenant that does not exist is a code like others, so that nobody who asks for one
  -- learns which tenants there are.
  tenant_id        text NOT NULL,
  client_id        text,
  native_kind      text CHECK (native_kind IN ('bundle', 'package')),
  native_id        text,
  status           text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'consumed')),
  user_id          uuid REFERENCES users ON DELETE CASCADE,
  session_id       uuid REFERENCES sessions ON DELETE CASCADE,
  mac              bytea NOT NULL,
  interval_seconds integer NOT NULL DEFAULT 5,
  polled_at        timestamptz,
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL,
  ip_address       text,
  user_agent       text
);
COMMENT ON COLUMN device_codes.session_id IS
  'In which it was decided: when it is ended, other than by signing out, what it let in is turned away.';
CREATE INDEX device_codes_due ON device_codes (expires_at);
CREATE INDEX device_codes_of_session ON device_codes (session_id) WHERE session_id IS NOT NULL;

-- ---------------------------------------------------------------- second factors

CREATE TABLE factors (
  user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind         text NOT NULL CHECK (kind IN ('totp', 'sms')),
  subject      text,
  mac          bytea NOT NULL,
  last_step    bigint NOT NULL DEFAULT 0,
  confirmed_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, kind)
);
COMMENT ON COLUMN factors.subject IS 'The phone number; of an authenticator nothing, its seed is in sealed.';
COMMENT ON COLUMN factors.last_step IS 'The newest time step whose code was used; no code works twice.';
-- By what a person is found.
CREATE INDEX factors_by_phone ON factors (subject) WHERE kind = 'sms';

CREATE TABLE enrolments (
  user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind       text NOT NULL CHECK (kind IN ('totp', 'sms')),
  subject    text,
  blob       bytea,
  mac        bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (user_id, kind)
);
COMMENT ON TABLE enrolments IS 'Factors that were begun and not yet confirmed by a code.';
CREATE INDEX enrolments_due ON enrolments (expires_at);

CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mac     bytea NOT NULL,
  used_at timestamptz,
  PRIMARY KEY (user_id, mac)
);

CREATE TABLE passkeys (
  id            uuid PRIMARY KEY,
  user_id       uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  credential_id bytea NOT NULL UNIQUE,
  public_key    bytea NOT NULL,
  sign_count    bigint NOT NULL,
  transports    text[] NOT NULL,
  name          text NOT NULL,
  mac           bytea NOT NULL,
  created_at    timestamptz NOT NULL,
  used_at       timestamptz
);
CREATE INDEX passkeys_of_user ON passkeys (user_id);

-- ---------------------------------------------------------------- programs of a tenant

CREATE TABLE app_clients (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         text NOT NULL,
  document   text NOT NULL,
  enabled    boolean NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN app_clients.document IS 'Canonical JSON, under the MAC together with enabled.';
-- Which app clients list the origin of a web page.
CREATE INDEX app_clients_origins ON app_clients USING gin ((document::jsonb -> 'allowedOrigins')) WHERE enabled;

CREATE TABLE app_secrets (
  tenant_id   text NOT NULL,
  id          uuid NOT NULL,
  client_id   text NOT NULL,
  secret_hash bytea NOT NULL UNIQUE,
  prefix      text NOT NULL,
  mac         bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  retires_at  timestamptz,
  revoked_at  timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, client_id) REFERENCES app_clients ON DELETE CASCADE
);
COMMENT ON COLUMN app_secrets.retires_at IS 'Null: active. Set when a newer one supersedes it: it serves until then.';
CREATE INDEX app_secrets_ended ON app_secrets (LEAST(revoked_at, retires_at));
CREATE TRIGGER forget AFTER DELETE ON app_secrets FOR EACH ROW EXECUTE FUNCTION forget_signatures();

CREATE TABLE signing_keys (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         uuid NOT NULL,
  prefix     text NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  retires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE signing_keys IS 'Keys that sign requests; the secret itself is in sealed.';
CREATE INDEX signing_keys_ended ON signing_keys (LEAST(revoked_at, retires_at));
CREATE TRIGGER forget AFTER DELETE ON signing_keys FOR EACH ROW EXECUTE FUNCTION forget_signatures();

CREATE TABLE used_signatures (
  tenant_id        text NOT NULL,
  key_name         text NOT NULL,
  signature_hash   bytea NOT NULL,
  idempotency_hash bytea NOT NULL,
  used_at          timestamptz NOT NULL DEFAULT service_now(),
  expires_at       timestamptz NOT NULL,
  tenant_row       text GENERATED ALWAYS AS (NULLIF(tenant_id, 'platform')) STORED REFERENCES tenants ON DELETE CASCADE,
  PRIMARY KEY (tenant_id, key_name, signature_hash)
);
COMMENT ON COLUMN used_signatures.expires_at IS
  'infinity: the request named no time, so its signature lives as long as its key.';
CREATE INDEX used_signatures_due ON used_signatures (tenant_id, expires_at);
CREATE INDEX used_signatures_of_tenant ON used_signatures (tenant_row);
CREATE INDEX used_signatures_age ON used_signatures (expires_at) WHERE expires_at < 'infinity';
