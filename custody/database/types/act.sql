-- Promises: What every act leaves behind beside what it changes: the idempotency key with the answer to a repetition,
--   and the audit row. Without a key, route, key_hash and fingerprint are null; an answer that showed a secret is null.
--   origin: request id, address, user agent. The fields of `Act` (custody/kit/act.py) stand in this order.

CREATE TYPE act AS (
  principal   text,
  route       text,
  key_hash    bytea,
  fingerprint bytea,
  answer      bytea,
  actor_type  text,
  actor_id    text,
  metadata    text,
  origin      text[]
);
