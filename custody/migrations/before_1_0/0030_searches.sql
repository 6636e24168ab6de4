-- What an agent's searches read: only the rows that they find, and a page of them, newest first.

CREATE INDEX transactions_by_status ON transactions (tenant_id, agent_id, status, created_at DESC, id);
-- Addresses are kept in the one spelling that their chain has, so each is found by it.
CREATE INDEX transactions_to ON transactions (tenant_id, agent_id, to_address, created_at DESC, id)
  WHERE to_address IS NOT NULL;
