-- Promises: One wallet of an agent to be created: its chain family, address and sealed key. The fields of
--   `NewWalletRow` (signer/agents.py) stand in this order.

CREATE TYPE new_wallet AS (
  agent   text,
  family  text,
  address text,
  blob    bytea
);
