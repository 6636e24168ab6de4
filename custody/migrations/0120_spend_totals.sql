-- The sums of what each agent ever spent, for limits on its whole life; and what a PSBT counts in dollars.

CREATE TABLE spend_totals (
  tenant_id   text NOT NULL,
  agent_id    text NOT NULL,
  incarnation uuid NOT NULL,
  asset       text NOT NULL,
  amount      numeric(100, 0) NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (tenant_id, agent_id, incarnation, asset),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents ON DELETE CASCADE
) WITH (fillfactor = 50);
COMMENT ON TABLE spend_totals IS
  'Kept by the write that keeps spend; evm:native and solana:native have the sums of their parts, each in one row.';

-- As far as it is known: each signature by itself, also one that another replaced, and at least what the hours hold.
INSERT INTO spend_totals (tenant_id, agent_id, incarnation, asset, amount)
SELECT tenant_id, agent_id, incarnation, asset, max(amount) FROM (
  SELECT t.tenant_id, t.agent_id, t.incarnation, n.asset, sum(m.amount::numeric) AS amount
    FROM transactions t
    JOIN agents a ON a.tenant_id = t.tenant_id AND a.id = t.agent_id AND a.incarnation = t.incarnation,
    LATERAL json_each_text(COALESCE(t.moved::json, CASE WHEN t.kind = 'evm' AND t.value > 0 THEN
      json_build_object('evm:' || t.chain_id || ':native', trunc(t.value)::text) END)) AS m (asset, amount),
    LATERAL (SELECT m.asset UNION ALL SELECT 'evm:native' WHERE m.asset LIKE 'evm:%:native'
             UNION ALL SELECT 'solana:native' WHERE m.asset = 'solana:rent') AS n (asset)
   WHERE t.signature IS NOT NULL GROUP BY t.tenant_id, t.agent_id, t.incarnation, n.asset
  UNION ALL
  SELECT s.tenant_id, s.agent_id, s.incarnation, n.asset, sum(s.amount)
    FROM spend s JOIN agents a ON a.tenant_id = s.tenant_id AND a.id = s.agent_id AND a.incarnation = s.incarnation,
    LATERAL (SELECT s.asset UNION ALL SELECT 'evm:native' WHERE s.asset LIKE 'evm:%:native'
             UNION ALL SELECT 'solana:native' WHERE s.asset = 'solana:rent') AS n (asset)
   GROUP BY s.tenant_id, s.agent_id, s.incarnation, n.asset) known
 GROUP BY tenant_id, agent_id, incarnation, asset;

ALTER TABLE psbt_spends ADD COLUMN micro_usd numeric(100, 0) NOT NULL DEFAULT 0 CHECK (micro_usd >= 0);
COMMENT ON COLUMN psbt_spends.micro_usd IS 'What it counts in millionths of a dollar, in the same hour.';

ALTER TABLE spend_totals ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON spend_totals TO custody_api, custody_signer, custody_scheduler, custody_proxy
  USING (tenant_id = current_setting('custody.tenant'));
CREATE POLICY across ON spend_totals TO custody_definer USING (true);
GRANT SELECT ON spend_totals TO custody_api;
GRANT SELECT, INSERT, UPDATE ON spend_totals TO custody_signer;
