-- Orders, what they count, and the approvals that some of them wait for.

CREATE TABLE transactions (
  tenant_id      text NOT NULL,
  id             uuid NOT NULL,
  agent_id       text NOT NULL,
  incarnation    uuid NOT NULL,
  kind           text NOT NULL,
  family         text NOT NULL,
  status         text NOT NULL
    CHECK (status IN ('pending_approval', 'rejected', 'signed', 'broadcast', 'confirmed', 'failed')),
  status_detail  text,
  to_address     text,
  value          numeric(78, 0),
  data           text,
  chain_id       bigint,
  caip2          text,
  broadcast      boolean NOT NULL,
  reference_id   text,
  replaces_tx_id uuid,
  order_text     text NOT NULL,
  digest         bytea NOT NULL,
  effects        text NOT NULL,
  policy_results text NOT NULL,
  policy_version bigint NOT NULL,
  nonce          bigint,
  fee            text,
  tx_hash        text,
  signature      text,
  signed_bytes   bytea,
  answer         bytea NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT service_now(),
  signed_at      timestamptz,
  broadcast_at   timestamptz,
  confirmed_at   timestamptz,
  resend_at      timestamptz,
  resends        integer NOT NULL DEFAULT 0,
  budgets        text,
  policy_hash    bytea,
  look_at        timestamptz,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT signed_has_signature CHECK (status IN ('pending_approval', 'rejected') OR signature IS NOT NULL),
  CONSTRAINT unsigned_has_none CHECK (
    status NOT IN ('pending_approval', 'rejected') OR (signature IS NULL AND signed_bytes IS NULL))
);
COMMENT ON COLUMN transactions.budgets IS
  'Spend against each limit, before and after, as the judge saw it when it signed.';
COMMENT ON COLUMN transactions.policy_hash IS 'SHA-256 of the rule set that judged, as docs/receipts.md spells it.';
COMMENT ON COLUMN transactions.look_at IS
  'When to ask a node next what became of it; null before it was sent and once it is final.';
CREATE INDEX transactions_newest ON transactions (tenant_id, agent_id, created_at DESC);
CREATE INDEX transactions_hash ON transactions (tenant_id, tx_hash) WHERE tx_hash IS NOT NULL;
CREATE INDEX transactions_reference ON transactions (tenant_id, agent_id, reference_id) WHERE reference_id IS NOT NULL;
CREATE INDEX transactions_replacing ON transactions (tenant_id, replaces_tx_id) WHERE replaces_tx_id IS NOT NULL;
CREATE INDEX transactions_unsent ON transactions (resend_at) WHERE status = 'signed' AND broadcast;
CREATE INDEX transactions_following ON transactions (chain_id, look_at)
  WHERE status IN ('signed', 'broadcast') AND look_at IS NOT NULL;
CREATE INDEX transactions_rejected ON transactions (created_at) WHERE status = 'rejected' AND order_text <> '';

CREATE TABLE approvals (
  tenant_id           text NOT NULL,
  id                  uuid NOT NULL,
  tx_id               uuid NOT NULL,
  agent_id            text NOT NULL,
  status              text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected', 'expired')),
  digest              bytea NOT NULL,
  mac                 bytea NOT NULL,
  requested_at        timestamptz NOT NULL DEFAULT service_now(),
  expires_at          timestamptz,
  resolved_at         timestamptz,
  resolved_by         text,
  resolved_by_user_id text,
  reason              text,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, tx_id),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT resolved_has_time CHECK ((status = 'pending') = (resolved_at IS NULL))
);
CREATE INDEX approvals_queue ON approvals (tenant_id, status, requested_at DESC);
CREATE INDEX approvals_of_agent ON approvals (tenant_id, agent_id) WHERE status = 'pending';
CREATE INDEX approvals_due ON approvals (expires_at) WHERE status = 'pending' AND expires_at IS NOT NULL;

CREATE TABLE spend (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  asset       text NOT NULL,
  hour        timestamptz NOT NULL,
  amount      numeric(100, 0) NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (tenant_id, agent_id, incarnation, asset, hour),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX spend_age ON spend (hour);

CREATE TABLE rate (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  grain       text NOT NULL CHECK (grain IN ('minute', 'hour')),
  bucket      timestamptz NOT NULL,
  orders      integer NOT NULL CHECK (orders > 0),
  PRIMARY KEY (tenant_id, agent_id, incarnation, grain, bucket),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX rate_age ON rate (bucket);

CREATE TABLE nonces (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  address   text NOT NULL,
  chain_id  bigint NOT NULL,
  nonce     bigint NOT NULL,
  tx_id     uuid NOT NULL,
  state     text NOT NULL CHECK (state IN ('open', 'sent', 'seen')),
  charges   text NOT NULL,
  PRIMARY KEY (tenant_id, address, chain_id, nonce),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON COLUMN nonces.state IS
  'open: signed, none of its bytes meant for a node; sent: bytes on their way; seen: on chain.';
COMMENT ON COLUMN nonces.charges IS 'asset -> {amount, hour}: what this slot counts in spend, at its largest.';
