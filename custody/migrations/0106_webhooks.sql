-- Events, webhook endpoints and deliveries. Endpoints, which have a sealed secret, are the signer's to write, and so is
-- what a person does to a delivery; what becomes of a delivery by itself is the scheduler's.

CREATE TABLE outbox (
  tenant_id  text NOT NULL,
  id         bigint GENERATED ALWAYS AS IDENTITY,
  event      text NOT NULL,
  agent_id   text,
  data       text NOT NULL,
  created_at timestamptz NOT NULL,
  event_id   uuid NOT NULL DEFAULT gen_random_uuid(),
  PRIMARY KEY (tenant_id, id),
  -- A megabyte is what a message to the signer may be; what it emits is made of one.
  CONSTRAINT outbox_bounds CHECK (
    event ~ '^[a-z_]{1,32}(\.[a-z_]{1,32}){1,3}$'
    AND octet_length(agent_id) <= 2048 AND octet_length(data) <= 1048576)
);
COMMENT ON TABLE outbox IS
  'Written by the acting transaction, taken away by the one publisher; so it is small and hot.';
CREATE INDEX outbox_order ON outbox (id);

CREATE TABLE event_marks (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  mark      text NOT NULL,
  at        timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, mark),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT event_marks_bounds CHECK (octet_length(mark) <= 4096)
);
COMMENT ON TABLE event_marks IS 'When a coalesced event was last emitted.';
CREATE INDEX event_marks_age ON event_marks (at);

-- A tenant that is made again under an old id must not read what the old one did. The key to tenants also makes a
-- publisher and a deletion wait for each other; on the outbox it would cost every signature a lock on its tenant, so a
-- trigger on tenants does it there.
CREATE TABLE events (
  tenant_id    text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  number       bigint GENERATED ALWAYS AS IDENTITY,
  id           uuid NOT NULL,
  event        text NOT NULL,
  agent_id     text,
  data         text NOT NULL,
  created_at   timestamptz NOT NULL,
  published_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, number)
);
COMMENT ON TABLE events IS
  'What was published. One publisher at a time numbers them, so who has read up to a number has missed nothing.';
CREATE INDEX events_age ON events (published_at);

CREATE TABLE webhook_endpoints (
  tenant_id        text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id               uuid NOT NULL,
  url              text NOT NULL,
  events           text[],
  enabled          boolean NOT NULL DEFAULT true,
  disabled_reason  text,
  max_retries      integer NOT NULL CHECK (max_retries BETWEEN 0 AND 10),
  retry_backoff_ms integer NOT NULL CHECK (retry_backoff_ms >= 1000),
  description      text,
  created_at       timestamptz NOT NULL DEFAULT service_now(),
  deleted_at       timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN webhook_endpoints.events IS 'null: every event there is, later ones too.';
COMMENT ON COLUMN webhook_endpoints.deleted_at IS
  'The row stays while deliveries speak of it; its secret goes at once.';
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE deliveries (
  tenant_id       text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id              uuid NOT NULL DEFAULT gen_random_uuid(),
  endpoint_id     uuid NOT NULL,
  event_number    bigint,
  event           text NOT NULL,
  body            text,
  url             text NOT NULL,
  status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'delivered', 'failed')),
  attempts        integer NOT NULL DEFAULT 0,
  max_attempts    integer NOT NULL,
  next_retry_at   timestamptz,
  error           text,
  response_status integer,
  created_at      timestamptz NOT NULL DEFAULT service_now(),
  delivered_at    timestamptz,
  replayed_from   uuid,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, endpoint_id) REFERENCES webhook_endpoints ON DELETE CASCADE,
  -- A delivery is over within weeks, so a next attempt of another century is nobody's.
  CONSTRAINT deliveries_bounds CHECK (
    octet_length(error) <= 256 AND response_status BETWEEN 100 AND 999 AND attempts BETWEEN 0 AND 100
    AND next_retry_at > '1970-01-01 00:00:00+00' AND next_retry_at < '3000-01-01 00:00:00+00')
);
COMMENT ON COLUMN deliveries.body IS
  'Only of a test, which is no event: the others are made from their event, the same bytes each time.';
COMMENT ON COLUMN deliveries.url IS
  'Where it was meant to go: an old event never goes to an address that was given later.';
COMMENT ON COLUMN deliveries.next_retry_at IS
  'When it is due: at first at once; while processing, when its claim is over; null when nothing is left to do.';
COMMENT ON COLUMN deliveries.error IS 'Our short word for what went wrong, never the receiver''s.';
-- An endpoint with a million open deliveries costs a claim no more than one with a single one.
CREATE INDEX deliveries_open ON deliveries (tenant_id, endpoint_id, next_retry_at) WHERE next_retry_at IS NOT NULL;
CREATE INDEX deliveries_newest ON deliveries (tenant_id, endpoint_id, created_at DESC, id);
CREATE INDEX deliveries_sent_again ON deliveries (tenant_id, endpoint_id)
  WHERE next_retry_at IS NOT NULL AND (replayed_from IS NOT NULL OR event = 'webhook.test');
CREATE INDEX deliveries_age ON deliveries (created_at);
