-- Spend by the coin of each EVM chain, and what each order moves.

ALTER TABLE transactions ADD COLUMN moved text;
COMMENT ON COLUMN transactions.moved IS
  'asset -> amount: what the order moves by itself, each amount once; null where nothing, or from before this column.';
COMMENT ON TABLE spend IS
  'Each amount once: evm:<chainId>:native counts towards evm:native too, and solana:rent towards solana:native.';

-- What counts already, under the chain on which it was signed: each slot knows its chain, and the sums stay the same.
LOCK TABLE nonces, spend IN SHARE ROW EXCLUSIVE MODE;
CREATE TEMPORARY TABLE counted ON COMMIT DROP AS
SELECT n.tenant_id, n.address, n.chain_id, n.nonce, s.agent_id, s.incarnation, s.hour, n.amount
  FROM (SELECT o.tenant_id, o.agent_id, o.address, o.chain_id, o.nonce, (o.charge->>'hour')::timestamptz AS hour,
               (o.charge->>'amount')::numeric AS amount
          FROM (SELECT *, charges::json->'evm:native' AS charge FROM nonces) o WHERE o.charge IS NOT NULL) n
  JOIN agents a ON a.tenant_id = n.tenant_id AND a.id = n.agent_id
  JOIN spend s ON s.tenant_id = n.tenant_id AND s.agent_id = n.agent_id AND s.incarnation = a.incarnation
   AND s.asset = 'evm:native' AND s.hour = n.hour;
INSERT INTO spend (tenant_id, agent_id, incarnation, asset, hour, amount)
SELECT tenant_id, agent_id, incarnation, 'evm:' || chain_id || ':native', hour, sum(amount) FROM counted
 GROUP BY tenant_id, agent_id, incarnation, chain_id, hour;
UPDATE spend s SET amount = greatest(0, s.amount - c.amount)
  FROM (SELECT tenant_id, agent_id, incarnation, hour, sum(amount) AS amount FROM counted
         GROUP BY tenant_id, agent_id, incarnation, hour) c
 WHERE s.tenant_id = c.tenant_id AND s.agent_id = c.agent_id AND s.incarnation = c.incarnation
   AND s.asset = 'evm:native' AND s.hour = c.hour;
UPDATE nonces n SET charges = replace(n.charges, '"evm:native"', '"evm:' || n.chain_id || ':native"')
  FROM counted c
 WHERE n.tenant_id = c.tenant_id AND n.address = c.address AND n.chain_id = c.chain_id AND n.nonce = c.nonce;
