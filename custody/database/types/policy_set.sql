-- Promises: A policy set as policy_sets stores it. The fields of `SetRow` (signer/policy_sets.py) stand in this order.

CREATE TYPE policy_set AS (
  id      text,
  name    text,
  version bigint,
  rules   text,
  mac     bytea
);
