-- Policy sets that many agents name, one for every agent of a tenant, and what all agents of a set spent together.

CREATE TABLE policy_sets (
  tenant_id  text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id         text NOT NULL,
  name       text NOT NULL,
  version    bigint NOT NULL,
  rules      text NOT NULL,
  mac        bytea NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN policy_sets.id IS
  'A uuid, or `tenant`: the set of every agent, which nobody names and nobody deletes.';
COMMENT ON COLUMN policy_sets.rules IS 'Rows as those of policy_rules, as JSON; under the MAC with the version.';

ALTER TABLE agents ADD COLUMN policy_set text,
  ADD CONSTRAINT agents_policy_set FOREIGN KEY (tenant_id, policy_set) REFERENCES policy_sets;
COMMENT ON COLUMN agents.policy_set IS 'The set that its sealed rules name; nothing is judged by this column.';
CREATE INDEX agents_by_policy_set ON agents (tenant_id, policy_set) WHERE policy_set IS NOT NULL;

CREATE TABLE set_spend (
  tenant_id text NOT NULL,
  set_id    text NOT NULL,
  asset     text NOT NULL,
  hour      timestamptz NOT NULL,
  amount    numeric(100, 0) NOT NULL,
  PRIMARY KEY (tenant_id, set_id, asset, hour),
  FOREIGN KEY (tenant_id, set_id) REFERENCES policy_sets ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE INDEX set_spend_age ON set_spend (hour);
CREATE TABLE set_totals (
  tenant_id text NOT NULL,
  set_id    text NOT NULL,
  asset     text NOT NULL,
  amount    numeric(100, 0) NOT NULL,
  PRIMARY KEY (tenant_id, set_id, asset),
  FOREIGN KEY (tenant_id, set_id) REFERENCES policy_sets ON DELETE CASCADE
) WITH (fillfactor = 50);
COMMENT ON TABLE set_totals IS
  'What all agents of a set ever spent of an asset while a rule limited it for all; the row is the lock of the sum.';

ALTER TABLE call_charges ADD COLUMN sets text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN call_charges.sets IS 'The sets in whose sums it counts too.';

ALTER TABLE policy_sets ENABLE ROW LEVEL SECURITY;
ALTER TABLE set_spend ENABLE ROW LEVEL SECURITY;
ALTER TABLE set_totals ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON policy_sets TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY own_tenant ON set_spend TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY own_tenant ON set_totals TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON policy_sets TO custody_definer USING (true);
CREATE POLICY across ON set_spend TO custody_definer USING (true);
CREATE POLICY across ON set_totals TO custody_definer USING (true);
GRANT SELECT ON policy_sets, set_spend, set_totals TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON policy_sets TO custody_signer;
GRANT SELECT, INSERT, UPDATE ON set_spend, set_totals TO custody_signer;
GRANT SELECT ON policy_sets TO custody_definer;
GRANT SELECT, DELETE ON set_spend TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (hour) ON set_spend TO custody_definer;

INSERT INTO retention (what, relation, old) VALUES
  ('spend of policy sets', 'set_spend', $$r.hour < $1 - interval '8 days'$$);
