-- Promises: One judged order as sign_write writes it, part by part. The parts of `Record` (signer/ledger.py) and the
--   fields of each stand in this order.

CREATE TYPE sign_record AS (
  -- The order, as it was asked for.
  tx                 uuid,
  kind               text,
  family             text,
  to_address         text,
  value              text,
  data               text,
  chain_id           bigint,
  caip2              text,
  broadcast          boolean,
  reference_id       text,
  order_text         text,
  digest             bytea,
  authorization_text text,
  wallet_action      text,
  -- What was found in it.
  effects            text,
  moved              text,
  policy_results     text,
  policy_version     bigint,
  policy_hash        bytea,
  fee                text,
  hour               timestamptz,
  -- The outcome.
  status             text,
  answer             bytea,
  action             text,
  events             text,
  counts_rate        boolean,
  resolved_at        timestamptz,
  resend_seconds     integer,
  look_seconds       integer,
  -- A signature.
  tx_hash            text,
  signature          text,
  signed_bytes       bytea,
  budgets            text,
  votes_text         text,
  replaces_tx_id     uuid,
  -- The nonce slot.
  nonce              bigint,
  slot_from          uuid,
  slot_was           text,
  slot_state         text,
  slot_address       text,
  slot_charges       text,
  -- The spend.
  spend_assets       text[],
  spend_amounts      text[],
  moved_assets       text[],
  moved_hours        timestamptz[],
  moved_amounts      text[],
  -- The coins of a PSBT.
  unsigned_txid      bytea,
  spent_txids        bytea[],
  spent_vouts        bigint[],
  -- The approval that is waited for.
  approval           uuid,
  approval_mac       bytea,
  expire_seconds     integer,
  waits_since        timestamptz,
  release_at         timestamptz,
  -- The recipients that a person let the agent reach.
  recipient_kinds    text[],
  recipient_names    text[],
  recipient_macs     bytea[],
  -- The circuit breakers that count a refusal.
  breaker_minutes    integer[],
  breaker_most       integer[],
  breaker_reasons    text[],
  breaker_events     text[]
);
