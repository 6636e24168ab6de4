-- Promises: A new intent as put_intent keeps it. The fields of `NewRow` (signer/intents/steps.py) stand in this order.

CREATE TYPE intent_row AS (
  id              uuid,
  agent_id        text,
  incarnation     uuid,
  type            text,
  resource_type   text,
  resource_id     text,
  reference_id    text,
  payload         text,
  digest          bytea,
  created_by      text,
  created_by_name text,
  tx_ids          uuid[],
  results         text,
  answer          bytea,
  expires_at      timestamptz,
  created_at      timestamptz,
  mac             bytea
);
