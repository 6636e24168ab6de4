-- Promises: How many of these orders are gone although their agents are as they were; a signer asks for those that it
--   acknowledged. Orders go with their agent, which is frozen before.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION orders_missing(p_tenants text[], p_agents text[], p_incarnations uuid[], p_orders uuid[])
RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM unnest(p_tenants, p_agents, p_incarnations, p_orders) AS o(tenant, agent, incarnation, id)
   WHERE EXISTS (SELECT FROM agents a WHERE a.tenant_id = o.tenant AND a.id = o.agent
                    AND a.incarnation = o.incarnation AND a.frozen_at IS NULL)
     AND NOT EXISTS (SELECT FROM transactions t WHERE t.tenant_id = o.tenant AND t.id = o.id)
$$;
