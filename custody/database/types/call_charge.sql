-- Promises: One priced call as it is charged: the route by the MAC under which its price was read, and the policy sets
--   in whose sums it counts too. The fields of `CallRow` (signer/ledger.py) stand in this order.

CREATE TYPE call_charge AS (
  id        uuid,
  route     uuid,
  mac       bytea,
  micro_usd bigint,
  hour      timestamptz,
  sets      text[]
);
