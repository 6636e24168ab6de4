-- Orders, what they count, the approvals that some of them wait for, and which coins of Bitcoin were signed away.
--
-- Each index of a list holds the list's whole order, newest first, so that a page of any depth is read without a sort.

CREATE TABLE transactions (
  tenant_id          text NOT NULL,
  id                 uuid NOT NULL,
  agent_id           text NOT NULL,
  incarnation        uuid NOT NULL,
  kind               text NOT NULL,
  family             text NOT NULL,
  status             text NOT NULL
    CHECK (status IN ('pending_approval', 'rejected', 'signed', 'broadcast', 'confirmed', 'failed')),
  status_detail      text,
  to_address         text,
  value              numeric(78, 0),
  data               text,
  chain_id           bigint,
  caip2              text,
  broadcast          boolean NOT NULL,
  reference_id       text,
  replaces_tx_id     uuid,
  order_text         text NOT NULL,
  digest             bytea NOT NULL,
  effects            text NOT NULL,
  policy_results     text NOT NULL,
  policy_version     bigint NOT NULL,
  nonce              bigint,
  fee                text,
  tx_hash            text,
  signature          text,
  signed_bytes       bytea,
  answer             bytea NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT service_now(),
  signed_at          timestamptz,
  broadcast_at       timestamptz,
  confirmed_at       timestamptz,
  resend_at          timestamptz,
  resends            integer NOT NULL DEFAULT 0,
  budgets            text,
  policy_hash        bytea,
  look_at            timestamptz,
  reason             text,
  moved              text,
  authorization_text text,
  wallet_action      text,
  votes_text         text,
  fee_paid           numeric(78, 0),
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT signed_has_signature CHECK (status IN ('pending_approval', 'rejected') OR signature IS NOT NULL),
  CONSTRAINT unsigned_has_none CHECK (
    status NOT IN ('pending_approval', 'rejected') OR (signature IS NULL AND signed_bytes IS NULL))
) WITH (toast_tuple_target = 4080);
-- So much because a plain order has a little over 2 KiB, the length from which Postgres compresses columns until a row is
-- shorter: each insert would pay for that, to save a tenth of the row. Longer ones are compressed.
COMMENT ON COLUMN transactions.budgets IS
  'Spend against each limit, before and after, as the judge saw it when it signed.';
COMMENT ON COLUMN transactions.policy_hash IS 'SHA-256 of the rule set that judged, as docs/receipts.md spells it.';
COMMENT ON COLUMN transactions.look_at IS
  'When to ask a node next what became of it; null before it was sent and once it is final.';
COMMENT ON COLUMN transactions.reason IS 'Why a person denied it, as they said it.';
COMMENT ON COLUMN transactions.moved IS
  'asset -> amount: what the order moves by itself, each amount once; null where nothing, or from before this column.';
COMMENT ON COLUMN transactions.authorization_text IS
  'JSON {quorum, signers, policyIds}: by whom the order was authorised; under the MAC of its approval or its receipt.';
COMMENT ON COLUMN transactions.wallet_action IS
  'JSON {type, token, recipient, amount, throttled}: the wallet action that the order is, and whether a rate limit '
  'refused it, which leaves its reference free; null for orders of the other routes.';
COMMENT ON COLUMN transactions.votes_text IS 'JSON: the votes under which the order was signed; under its receipt''s MAC.';
COMMENT ON COLUMN transactions.fee_paid IS
  'What the network took, in the smallest unit, as a node said; null while it is not final, and where no node said it.';
CREATE INDEX transactions_of_tenant ON transactions (tenant_id, created_at DESC, id);
CREATE INDEX transactions_newest ON transactions (tenant_id, agent_id, created_at DESC, id);
-- What an agent's searches read: only the rows that they find, and a page of them, newest first.
CREATE INDEX transactions_by_status ON transactions (tenant_id, agent_id, status, created_at DESC, id);
-- Addresses are kept in the one spelling that their chain has, so each is found by it.
CREATE INDEX transactions_to ON transactions (tenant_id, agent_id, to_address, created_at DESC, id)
  WHERE to_address IS NOT NULL;
CREATE INDEX transactions_hash ON transactions (tenant_id, tx_hash) WHERE tx_hash IS NOT NULL;
-- With the agent last, one index serves a reference of one agent and of any.
CREATE INDEX transactions_reference ON transactions (tenant_id, reference_id, agent_id) WHERE reference_id IS NOT NULL;
CREATE UNIQUE INDEX transactions_action_reference
  ON transactions (tenant_id, agent_id, (wallet_action::json->>'type'), reference_id)
  WHERE wallet_action IS NOT NULL AND reference_id IS NOT NULL AND (wallet_action::json->>'throttled') IS NULL;
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
  comment             text,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, tx_id),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions ON DELETE CASCADE,
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE,
  CONSTRAINT resolved_has_time CHECK ((status = 'pending') = (resolved_at IS NULL))
);
COMMENT ON COLUMN approvals.comment IS 'What the approver said.';
CREATE INDEX approvals_newest ON approvals (tenant_id, requested_at DESC, id);
CREATE INDEX approvals_queue ON approvals (tenant_id, status, requested_at DESC, id);
-- One agent's items of any status, the newest first.
CREATE INDEX approvals_by_agent ON approvals (tenant_id, agent_id, requested_at DESC);
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
COMMENT ON TABLE spend IS
  'Each amount once: evm:<chainId>:native counts towards evm:native too, and solana:rent towards solana:native.';
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

CREATE TABLE bitcoin_accounts (
  tenant_id  text NOT NULL,
  agent_id   text NOT NULL,
  account    text NOT NULL CHECK (length(account) <= 64),
  public_key bytea NOT NULL,
  chain_code bytea NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, agent_id, account),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE bitcoin_accounts IS
  'Account keys without their private halves, each under a MAC: another one here would make strangers'' outputs our change.';
COMMENT ON COLUMN bitcoin_accounts.account IS 'bitcoin:<network>:<type>:<account>, the beginning of a wallet scope.';

CREATE TABLE psbt_spends (
  tenant_id     text NOT NULL,
  agent_id      text NOT NULL,
  incarnation   uuid NOT NULL,
  unsigned_txid bytea NOT NULL,
  tx_id         uuid NOT NULL,
  amount        numeric(100, 0) NOT NULL CHECK (amount >= 0),
  hour          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, incarnation, unsigned_txid),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions (tenant_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE psbt_spends IS
  'What each transaction counts as spend, and in which hour: signed again it is the same spend, and counts once.';
CREATE INDEX psbt_spends_of_tx ON psbt_spends (tenant_id, tx_id);

CREATE TABLE outpoints (
  tenant_id text NOT NULL,
  agent_id  text NOT NULL,
  txid      bytea NOT NULL,
  vout      bigint NOT NULL,
  tx_id     uuid NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, txid, vout, tx_id),
  FOREIGN KEY (tenant_id, tx_id) REFERENCES transactions (tenant_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE outpoints IS 'The coins of an agent that its signed PSBTs spend: of two with one coin only one can happen.';
CREATE INDEX outpoints_of_tx ON outpoints (tenant_id, tx_id);
