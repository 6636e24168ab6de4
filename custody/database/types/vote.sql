-- Promises: One vote as approval_votes stores it, and the authenticator's counter. The fields of `VoteRow`
--   (signer/votes.py) stand in this order.

CREATE TYPE vote AS (
  kind               text,
  subject            text,
  user_id            uuid,
  key_id             uuid,
  authenticator_data bytea,
  client_data        bytea,
  signature          bytea,
  until              timestamptz,
  sign_count         bigint
);
