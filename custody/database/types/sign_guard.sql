-- Promises: What must still be so when sign_write writes: everything that the order was judged on, and the approval
--   that it claims. A null epoch, claim, stamp or list of voters is not compared. The fields of `GuardRow`
--   (signer/ledger.py) stand in this order.

CREATE TYPE sign_guard AS (
  incarnation    uuid,
  epoch          integer,
  ledger_version bigint,
  policy_version bigint,
  config_version bigint,
  claim          uuid,
  claim_user     text,
  claim_comment  text,
  used_by        text[],
  used_marks     bytea[],
  used_for       bytea,
  used_until     timestamptz,
  voters         uuid[],
  voter_macs     bytea[],
  voter_keys     uuid[],
  stored_bytes   bigint,
  family         text,
  stamp          text,
  minute         timestamptz,
  sets           text,
  releases       boolean
);
