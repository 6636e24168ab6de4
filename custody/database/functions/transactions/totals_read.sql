-- Promises: What an agent ever spent of the assets on whose sums its rules have a limit, as JSON; null where none has.
--   A rule without an asset is about the coins of all families.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION totals_read(p_tenant text, p_agent text, p_incarnation uuid) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT json_object_agg(s.asset, s.amount::text)::text FROM spend_totals s
   WHERE s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.incarnation = p_incarnation
     AND s.asset = ANY (ARRAY(
       SELECT n.asset FROM policy_rules r, LATERAL (
           SELECT CASE WHEN e.asset LIKE 'evm:%' THEN lower(e.asset) ELSE e.asset END
             FROM (SELECT r.config::json ->> 'asset') AS e (asset) WHERE e.asset IS NOT NULL
           UNION ALL SELECT unnest(ARRAY['evm:native', 'solana:native', 'bitcoin'])
            WHERE r.config::json ->> 'asset' IS NULL) AS n (asset)
        WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent AND r.config LIKE '%"maxTotal"%'))
$$;
