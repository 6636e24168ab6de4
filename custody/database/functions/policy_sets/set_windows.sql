-- Promises: What all agents of a policy set spent of an asset in the last day and in the last week, with the edges of
--   sign_read.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION set_windows(p_tenant text, p_set text, p_asset text, p_now timestamptz)
RETURNS TABLE (day numeric, week numeric)
LANGUAGE sql AS $$
  SELECT COALESCE(sum(s.amount) FILTER (WHERE s.hour >= date_trunc('hour', b.reach - interval '24 hours')), 0),
         COALESCE(sum(s.amount), 0)
    FROM set_spend s, (SELECT CASE p_asset WHEN 'usd' THEN p_now - interval '1 minute' ELSE p_now END AS reach) b
   WHERE s.tenant_id = p_tenant AND s.set_id = p_set AND s.asset = p_asset
     AND s.hour >= date_trunc('hour', b.reach - interval '168 hours')
$$;
