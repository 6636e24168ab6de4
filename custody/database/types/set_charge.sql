-- Promises: An amount of an asset that counts for all agents of a policy set, and the tightest limits that it was
--   judged by: of a day, of a week, ever; null is no limit. `place` is that of the agent in a batch. The fields of
--   `SetChargeRow` (signer/ledger.py) stand in this order.

CREATE TYPE set_charge AS (
  place    integer,
  set_id   text,
  asset    text,
  amount   numeric,
  per_day  numeric,
  per_week numeric,
  total    numeric
);
