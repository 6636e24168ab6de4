-- Promises: Counts priced calls of an agent, whose row the caller has locked, in the hour of p_now. False, and nothing
--   was written: a route or its secret is not the one whose price was read, or the hour in which it was judged is over.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION charge_calls(p_tenant text, p_agent text, p_incarnation uuid, p_calls call_charge[], p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_hour timestamptz := date_trunc('hour', p_now);
BEGIN
  IF EXISTS (SELECT FROM unnest(p_calls) AS c
               LEFT JOIN credential_routes r ON r.tenant_id = p_tenant AND r.id = c.route
               LEFT JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
              WHERE r.mac IS DISTINCT FROM c.mac OR c.hour <> v_hour
                 OR secret_lost(s.deleted_at, s.expires_at) IS NOT NULL) THEN
    RETURN false;
  END IF;
  INSERT INTO call_charges (tenant_id, id, agent_id, incarnation, route_id, micro_usd, hour, sets)
  SELECT p_tenant, c.id, p_agent, p_incarnation, c.route, c.micro_usd, v_hour, c.sets FROM unnest(p_calls) AS c;
  INSERT INTO spend AS s (tenant_id, agent_id, incarnation, asset, hour, amount)
  SELECT p_tenant, p_agent, p_incarnation, 'usd', v_hour, sum(c.micro_usd) FROM unnest(p_calls) AS c
  ON CONFLICT (tenant_id, agent_id, incarnation, asset, hour) DO UPDATE SET amount = s.amount + excluded.amount;
  INSERT INTO spend_totals AS s (tenant_id, agent_id, incarnation, asset, amount)
  SELECT p_tenant, p_agent, p_incarnation, 'usd', sum(c.micro_usd) FROM unnest(p_calls) AS c
  ON CONFLICT (tenant_id, agent_id, incarnation, asset) DO UPDATE SET amount = s.amount + excluded.amount;
  RETURN true;
END $$;
