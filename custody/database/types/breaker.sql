-- Promises: The circuit breakers of an agent's rules that count one thing: of each its window, the number that freezes
--   the agent, why, and the event. The fields of `BreakerRow` (signer/breakers.py) stand in this order.

CREATE TYPE breaker AS (
  minutes integer[],
  most    integer[],
  reasons text[],
  events  text[]
);
