-- Channels by which people are told in chat, push or mail, and the notices that are sent on them. Where a channel leads
-- is sealed by identity; here stands what may be shown of it.

CREATE TABLE notification_channels (
  tenant_id       text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id              uuid NOT NULL,
  user_id         uuid,
  kind            text NOT NULL CHECK (kind ~ '^[a-z]{1,16}$'),
  host            text NOT NULL,
  last_four       text NOT NULL,
  events          text[],
  detail          text NOT NULL CHECK (detail IN ('words', 'count')),
  after_minutes   integer NOT NULL CHECK (after_minutes BETWEEN 0 AND 1440),
  quiet_start     time,
  quiet_end       time,
  quiet_zone      text,
  description     text,
  enabled         boolean NOT NULL DEFAULT true,
  disabled_reason text,
  created_at      timestamptz NOT NULL DEFAULT service_now(),
  deleted_at      timestamptz,
  taken_at        timestamptz,
  delivered_at    timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, user_id) REFERENCES memberships ON DELETE CASCADE,
  CONSTRAINT notification_channels_quiet CHECK (
    (quiet_start IS NULL) = (quiet_end IS NULL) AND (quiet_start IS NULL) = (quiet_zone IS NULL)
    AND octet_length(quiet_zone) <= 64),
  CONSTRAINT notification_channels_bounds CHECK (
    octet_length(host) <= 300 AND octet_length(last_four) <= 16 AND cardinality(events) BETWEEN 1 AND 16
    AND octet_length(events::text) <= 1024 AND octet_length(description) <= 8192)
);
COMMENT ON COLUMN notification_channels.user_id IS 'Of a person''s own channel, which goes with their membership.';
COMMENT ON COLUMN notification_channels.events IS 'null: the defaults, later ones too.';
COMMENT ON COLUMN notification_channels.taken_at IS 'When a message was last taken up: the next one waits a minute.';
COMMENT ON COLUMN notification_channels.deleted_at IS
  'The row stays while notices speak of it; its target goes with its last message.';
CREATE INDEX notification_channels_newest ON notification_channels (tenant_id, created_at DESC, id)
  WHERE deleted_at IS NULL;
CREATE INDEX notification_channels_deleted ON notification_channels (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE notices (
  tenant_id       text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id              uuid NOT NULL DEFAULT gen_random_uuid(),
  channel_id      uuid,
  user_id         uuid,
  kind            text NOT NULL,
  purpose         text NOT NULL DEFAULT 'events' CHECK (purpose IN ('events', 'change', 'farewell', 'test')),
  numbers         bigint[] NOT NULL DEFAULT '{}',
  more            integer NOT NULL DEFAULT 0,
  said            text[] NOT NULL DEFAULT '{}',
  status          text NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'processing', 'delivered', 'failed', 'dropped')),
  attempts        integer NOT NULL DEFAULT 0,
  max_attempts    integer NOT NULL,
  next_retry_at   timestamptz,
  tried_at        timestamptz,
  error           text,
  response_status integer,
  created_at      timestamptz NOT NULL DEFAULT service_now(),
  delivered_at    timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, channel_id) REFERENCES notification_channels ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, user_id) REFERENCES memberships ON DELETE CASCADE,
  CONSTRAINT notices_to CHECK (channel_id IS NOT NULL OR user_id IS NOT NULL),
  CONSTRAINT notices_bounds CHECK (
    octet_length(error) <= 256 AND response_status BETWEEN 100 AND 999 AND attempts BETWEEN 0 AND 100
    AND next_retry_at > '1970-01-01 00:00:00+00' AND next_retry_at < '3000-01-01 00:00:00+00')
);
COMMENT ON TABLE notices IS 'One message each, of what happened until it is due; what was decided by then is left out.';
COMMENT ON COLUMN notices.channel_id IS 'null: a mail to an owner of the tenant, who is told of changed channels.';
COMMENT ON COLUMN notices.numbers IS 'The events that it tells of.';
COMMENT ON COLUMN notices.more IS 'How many events beyond those were counted and not kept.';
COMMENT ON COLUMN notices.said IS 'What no event tells, such as a changed channel: JSON each.';
COMMENT ON COLUMN notices.next_retry_at IS
  'When it is due; while processing, when its claim is over; null when nothing is left to do.';
CREATE INDEX notices_open ON notices (tenant_id, channel_id, next_retry_at) WHERE next_retry_at IS NOT NULL;
CREATE INDEX notices_due ON notices (next_retry_at) WHERE next_retry_at IS NOT NULL;
CREATE INDEX notices_newest ON notices (tenant_id, channel_id, created_at DESC, id);
CREATE INDEX notices_mails ON notices (tenant_id, tried_at) WHERE kind = 'email' AND tried_at IS NOT NULL;
CREATE INDEX notices_of_owners ON notices (tenant_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX notices_age ON notices (created_at);

ALTER TABLE notification_channels ENABLE ROW LEVEL SECURITY;
ALTER TABLE notices ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON notification_channels TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY own_tenant ON notices TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY of_identity ON notification_channels TO custody_identity
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY of_identity ON notices TO custody_identity USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON notification_channels TO custody_definer USING (true);
CREATE POLICY across ON notices TO custody_definer USING (true);
GRANT SELECT ON notification_channels, notices TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_channels, notices TO custody_identity;
GRANT SELECT, INSERT, UPDATE, DELETE ON notices TO custody_definer;
GRANT SELECT, DELETE ON notification_channels TO custody_definer;
GRANT UPDATE (enabled, disabled_reason, taken_at, delivered_at, created_at) ON notification_channels
  TO custody_definer;

ALTER TABLE identity_sealed DROP CONSTRAINT identity_sealed_owner_kind_check;
ALTER TABLE identity_sealed ADD CONSTRAINT identity_sealed_owner_kind_check
  CHECK (owner_kind IN ('session_key', 'user', 'signing_key', 'webhook', 'saml_key', 'channel'));
ALTER TABLE identity_sealed ADD COLUMN channel_id uuid
  GENERATED ALWAYS AS (CASE WHEN owner_kind = 'channel' THEN split_part(owner, '/', 1)::uuid END) STORED;
ALTER TABLE identity_sealed ADD FOREIGN KEY (tenant_id, channel_id) REFERENCES notification_channels ON DELETE CASCADE;
CREATE INDEX identity_sealed_channels ON identity_sealed (tenant_id, channel_id) WHERE channel_id IS NOT NULL;

INSERT INTO retention (what, relation, old) VALUES
  ('notices', 'notices', $$r.created_at < $1 - interval '30 days'$$),
  ('targets of deleted channels', 'identity_sealed', $$r.owner_kind = 'channel' AND (r.tenant_id, r.channel_id) IN (
     SELECT c.tenant_id, c.id FROM notification_channels c WHERE c.deleted_at < $1 - interval '1 hour')$$),
  ('deleted channels', 'notification_channels', $$r.deleted_at < $1 - interval '30 days' AND NOT EXISTS (
     SELECT FROM notices n WHERE n.tenant_id = r.tenant_id AND n.channel_id = r.id)$$);
