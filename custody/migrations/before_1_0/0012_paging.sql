-- What lists are read by, newest first. Each index holds the whole order of its list, so that a page of any depth is read
-- without a sort.

CREATE INDEX transactions_of_tenant ON transactions (tenant_id, created_at DESC, id);
DROP INDEX transactions_newest;
CREATE INDEX transactions_newest ON transactions (tenant_id, agent_id, created_at DESC, id);
CREATE INDEX approvals_newest ON approvals (tenant_id, requested_at DESC, id);
DROP INDEX approvals_queue;
CREATE INDEX approvals_queue ON approvals (tenant_id, status, requested_at DESC, id);
DROP INDEX deliveries_newest;
CREATE INDEX deliveries_newest ON deliveries (tenant_id, endpoint_id, created_at DESC, id);

-- With the agent last, one index serves a reference of one agent and of any.
DROP INDEX transactions_reference;
CREATE INDEX transactions_reference ON transactions (tenant_id, reference_id, agent_id) WHERE reference_id IS NOT NULL;
