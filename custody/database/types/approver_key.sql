-- Promises: One approver key to be kept. The fields of `KeyRow` (signer/approver_keys.py) stand in this order.

CREATE TYPE approver_key AS (
  id            uuid,
  user_id       uuid,
  name          text,
  rp_id         text,
  credential_id text,
  public_key    bytea,
  fingerprint   text,
  mac           bytea,
  created_at    timestamptz
);
