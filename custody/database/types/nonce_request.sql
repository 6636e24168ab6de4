-- Promises: Which nonce an order wants, on a chain that numbers a wallet's transactions; all null for other orders. The
--   fields of `NonceRow` (signer/ledger.py) stand in this order.

CREATE TYPE nonce_request AS (
  chain      bigint,
  pending    bigint,
  nonce      bigint,
  takes_open boolean
);
