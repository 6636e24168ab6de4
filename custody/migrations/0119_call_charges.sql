-- Priced calls: what each was charged, so that it is charged once, and what its answer left of it comes back once.

CREATE TABLE call_charges (
  tenant_id   text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id          uuid NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  route_id    uuid NOT NULL,
  micro_usd   bigint NOT NULL CHECK (micro_usd > 0),
  returned    bigint CHECK (returned BETWEEN 0 AND micro_usd),
  hour        timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON TABLE call_charges IS
  'Each counts in spend as usd. No key leads to its agent: nothing but age deletes so many rows.';
COMMENT ON COLUMN call_charges.returned IS 'What came back of it into the same hour, once; null: the whole counts.';
CREATE INDEX call_charges_age ON call_charges (hour);

ALTER TABLE call_charges ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON call_charges TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON call_charges TO custody_definer USING (true);
GRANT SELECT, INSERT ON call_charges TO custody_signer;
GRANT UPDATE (returned) ON call_charges TO custody_signer;
GRANT SELECT, DELETE ON call_charges TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (hour) ON call_charges TO custody_definer;

INSERT INTO retention (what, relation, old) VALUES
  ('charges of calls', 'call_charges', $$r.hour < $1 - interval '2 days'$$);
