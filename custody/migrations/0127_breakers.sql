-- The refusals and failures that circuit breakers count.

CREATE TABLE breaker_marks (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  kind        text NOT NULL CHECK (kind IN ('refused', 'failed')),
  tx_id       uuid NOT NULL,
  at          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, incarnation, kind, tx_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
);
COMMENT ON TABLE breaker_marks IS 'Only of agents with such a rule, as far back as its window; not sealed, as rates.';

ALTER TABLE breaker_marks ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON breaker_marks TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON breaker_marks TO custody_definer USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON breaker_marks TO custody_signer;
