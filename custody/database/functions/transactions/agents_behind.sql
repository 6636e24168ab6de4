-- Promises: How many of these agents are at an earlier version than a signer saw acknowledged: every act on one raises
--   it, and nothing lowers it. A server that only follows says nothing.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION agents_behind(p_tenants text[], p_agents text[], p_incarnations uuid[], p_versions bigint[])
RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM unnest(p_tenants, p_agents, p_incarnations, p_versions) AS s(tenant, agent, incarnation, version)
    JOIN agents a ON a.tenant_id = s.tenant AND a.id = s.agent AND a.incarnation = s.incarnation
   WHERE a.ledger_version < s.version AND NOT pg_is_in_recovery()
$$;
