-- Jobs of the scheduler, what is deleted when, and the place that shows whether the disk is full.

CREATE TABLE jobs (
  name              text PRIMARY KEY,
  last_success_at   timestamptz,
  last_failure_at   timestamptz,
  last_items        bigint NOT NULL DEFAULT 0,
  last_milliseconds bigint NOT NULL DEFAULT 0,
  CONSTRAINT jobs_bounds CHECK (
    name ~ '^[a-z0-9_-]{1,32}$' AND last_items BETWEEN 0 AND 1000000000000
    AND last_milliseconds BETWEEN 0 AND 1000000000000)
);
COMMENT ON TABLE jobs IS 'How each job of the schedulers last ended, for people and /ready; nothing is decided by it.';

CREATE TABLE room_trial (filler text NOT NULL);
ALTER TABLE room_trial ALTER COLUMN filler SET STORAGE EXTERNAL;
COMMENT ON TABLE room_trial IS 'Always empty: what room_to_write() puts here it takes back at once.';

CREATE TABLE retention (
  what     text PRIMARY KEY,
  relation text NOT NULL,
  old      text NOT NULL,
  place    integer GENERATED ALWAYS AS IDENTITY
);
COMMENT ON TABLE retention IS
  'What is deleted when it is old, a line for each; the owner alone writes it, and retain() obeys it.';
COMMENT ON COLUMN retention.old IS 'A condition on r, with $1 for the present moment. An index must answer it.';
COMMENT ON COLUMN retention.place IS
  'In this order: what names another row goes before it, so that no deletion pulls many others with it.';

-- A month of history, and what still waits then for a receiver that never answers: its event is gone by then, too.
INSERT INTO retention (what, relation, old) VALUES
  ('deliveries', 'deliveries', $$r.created_at < $1 - interval '30 days'$$),
  ('events', 'events', $$r.published_at < $1 - interval '30 days'$$),
  ('deleted endpoints', 'webhook_endpoints', $$r.deleted_at < $1 - interval '30 days' AND NOT EXISTS (
     SELECT FROM deliveries d WHERE d.tenant_id = r.tenant_id AND d.endpoint_id = r.id)$$);

-- Proofs and codes that are over. A device is shown for an hour that its code expired.
INSERT INTO retention (what, relation, old) VALUES
  ('idempotency keys', 'idempotency', $$r.expires_at < $1$$),
  ('sign-in nonces', 'sign_in_nonces', $$r.expires_at < $1$$),
  ('sign-in codes', 'sign_in_codes', $$r.expires_at < $1$$),
  ('challenges', 'challenges', $$r.expires_at < $1$$),
  ('enrolments', 'enrolments', $$r.expires_at < $1$$),
  ('device codes', 'device_codes', $$r.expires_at < $1 - interval '1 hour'$$),
  ('attempts', 'attempts', $$r.ends_at < $1$$),
  ('sessions', 'sessions', $$LEAST(r.revoked_at, r.expires_at) < $1 - interval '30 days'$$);

-- Signatures of requests, and what they were made with. The signatures of an ended key go before it, a batch at a time.
INSERT INTO retention (what, relation, old) VALUES
  -- A minute later than it must, for clocks differ.
  ('used signatures', 'used_signatures', $$r.expires_at < 'infinity' AND r.expires_at < $1 - interval '1 minute'$$),
  -- A day later no request that the key signed is under way any more.
  ('signatures of ended keys', 'used_signatures', $$(r.tenant_id, r.key_name) IN (
     SELECT k.tenant_id, k.id::text FROM signing_keys k WHERE LEAST(k.revoked_at, k.retires_at) < $1 - interval '1 day'
     UNION ALL SELECT a.tenant_id, encode(a.secret_hash, 'hex') FROM app_secrets a
      WHERE LEAST(a.revoked_at, a.retires_at) < $1 - interval '1 day')$$),
  ('sealed values of ended signing keys', 'identity_sealed', $$r.owner_kind = 'signing_key' AND (r.tenant_id, r.owner) IN (
     SELECT k.tenant_id, k.id::text FROM signing_keys k
      WHERE LEAST(k.revoked_at, k.retires_at) < $1 - interval '1 day')$$),
  -- Listed for ninety days, so that a person finds out why a program was refused.
  ('ended signing keys', 'signing_keys', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND NOT EXISTS (
     SELECT FROM used_signatures u WHERE u.tenant_id = r.tenant_id AND u.key_name = r.id::text)$$),
  ('ended app secrets', 'app_secrets', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND NOT EXISTS (
     SELECT FROM used_signatures u WHERE u.tenant_id = r.tenant_id AND u.key_name = encode(r.secret_hash, 'hex'))$$);

-- Secrets. One that a route still names stays: without it the route would be gone too, and another one could match.
INSERT INTO retention (what, relation, old) VALUES
  ('values of expired secrets', 'sealed', $$r.owner_kind = 'secret' AND (r.tenant_id, r.owner) IN (
     SELECT s.tenant_id, s.id::text FROM secrets s WHERE s.expires_at < $1 - interval '30 days')$$),
  ('deleted secrets', 'secrets', $$r.deleted_at < $1 - interval '30 days' AND NOT EXISTS (
     SELECT FROM credential_routes c WHERE c.tenant_id = r.tenant_id AND c.secret_id = r.id)$$);

-- Buckets that no window reaches: the widest is a week.
INSERT INTO retention (what, relation, old) VALUES
  ('event marks', 'event_marks', $$r.at < $1 - interval '8 days'$$),
  ('spend', 'spend', $$r.hour < $1 - interval '8 days'$$),
  ('rate', 'rate', $$r.bucket < $1 - interval '8 days'$$);

-- Listed for ninety days, so that a person finds out why a program was refused. The newest stays: by their keys and
-- configurations the signer finds the tenants whose rows it verifies.
INSERT INTO retention (what, relation, old) VALUES
  ('ended tenant keys', 'tenant_keys', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND EXISTS (
     SELECT FROM tenant_keys k WHERE k.tenant_id = r.tenant_id AND (k.created_at, k.id) > (r.created_at, r.id))$$);

-- What is over: former secrets of webhooks, sessions of imports, intents, sign-ins under way, and invitations.
INSERT INTO retention (what, relation, old) VALUES
  ('former secrets of webhooks', 'identity_sealed', $$r.ends_at < $1$$),
  ('import sessions', 'import_sessions', $$r.expires_at < $1 - interval '1 hour'$$),
  ('ended intents', 'intents', $$r.updated_at < $1 - interval '365 days'
     AND r.status NOT IN ('pending', 'authorized', 'executing')$$),
  ('sign-ins under way', 'sign_in_requests', $$r.expires_at < $1$$),
  ('exchange codes', 'exchange_codes', $$r.expires_at < $1 - interval '15 minutes'$$),
  ('seen SAML assertions', 'saml_assertions_seen', $$r.expires_at < $1$$),
  -- Listed for ninety days, so that people find out what became of one.
  ('ended invitations', 'invitations', $$r.expires_at < $1 - interval '90 days'$$);
