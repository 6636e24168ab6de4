-- Promises: Adds to the sums of an agent's whole life what an order counts, less what counted of it before; of a part,
--   as the coin of one chain, to the sum of the whole too.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION count_totals(p_tenant text, p_agent text, p_incarnation uuid, r sign_record) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO spend_totals AS s (tenant_id, agent_id, incarnation, asset, amount)
  SELECT p_tenant, p_agent, p_incarnation, n.asset, GREATEST(sum(c.amount), 0)
    FROM (SELECT a.asset, a.amount::numeric FROM unnest(r.spend_assets, r.spend_amounts) AS a (asset, amount)
          UNION ALL
          SELECT b.asset, -b.amount::numeric FROM unnest(r.moved_assets, r.moved_amounts) AS b (asset, amount)
         ) AS c (asset, amount),
         LATERAL (SELECT c.asset UNION ALL SELECT 'evm:native' WHERE c.asset LIKE 'evm:%:native'
                  UNION ALL SELECT 'solana:native' WHERE c.asset = 'solana:rent') AS n (asset)
   GROUP BY n.asset
  ON CONFLICT (tenant_id, agent_id, incarnation, asset) DO UPDATE SET amount = s.amount + excluded.amount
$$;
