-- Promises: One agent to be created, and the MAC of its rules. The fields of `NewAgentRow` (signer/agents.py) stand in
--   this order.

CREATE TYPE new_agent AS (
  id          text,
  name        text,
  platform_id text,
  incarnation uuid,
  head_mac    bytea
);
