-- Promises: One step of an intent: from the state under `mac` to `status`, under `next_mac`. What a step does not set
--   stays. `told` and `events` are for the log and the outbox, of a step that sign_write takes. The fields of `StepRow`
--   (signer/intents/steps.py) stand in this order.

CREATE TYPE intent_step AS (
  id            uuid,
  mac           bytea,
  status        text,
  baseline      text,
  authorized_by uuid,
  authorized_at timestamptz,
  result        text,
  reason        text,
  next_mac      bytea,
  told          text,
  events        text
);
