-- What people say with a decision: a comment on an approval, and on an order that was denied the reason, which its agent
-- may read.

ALTER TABLE approvals ADD COLUMN comment text;
COMMENT ON COLUMN approvals.comment IS 'What the approver said.';
ALTER TABLE transactions ADD COLUMN reason text;
COMMENT ON COLUMN transactions.reason IS 'Why a person denied it, as they said it.';
-- One agent's items of any status, the newest first.
CREATE INDEX approvals_by_agent ON approvals (tenant_id, agent_id, requested_at DESC);
