-- Promises: One rule of an agent as policy_rules stores it. The fields of `RuleRow` (signer/policies.py) stand in this
--   order.

CREATE TYPE rule AS (
  id      text,
  type    text,
  enabled boolean,
  config  text
);
