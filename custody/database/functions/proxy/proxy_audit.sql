-- Promises: Appends the audit rows of many proxied requests, of any tenants, at the time of the database. All
--   arrays have the same length.
-- Runs as: definer
-- Execute: proxy

CREATE FUNCTION proxy_audit(p_tenants text[], p_agents text[], p_resources text[], p_metadata text[],
                            p_request_ids text[],
                                       p_addresses text[], p_user_agents text[], p_at timestamptz[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF cardinality(p_tenants) > 1000 THEN
    RAISE EXCEPTION 'at most 1000 rows at once' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  -- A row that comes late may be of a tenant that was deleted meanwhile; its log says that it was made.
  IF EXISTS (SELECT FROM (SELECT DISTINCT u.tenant FROM unnest(p_tenants) AS u (tenant)) n
              WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.id = n.tenant)
                AND NOT EXISTS (SELECT FROM audit a WHERE a.tenant_id = n.tenant AND a.action = 'tenant.created'
                                                      AND a.resource_id = n.tenant)) THEN
    RAISE EXCEPTION 'there is no such tenant' USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  SELECT n.tenant, session_user, 'agent', n.agent, 'proxy.request', 'upstream', n.resource, n.metadata, n.address,
    n.user_agent, n.request_id, service_now()
    FROM unnest(p_tenants, p_agents, p_resources, p_metadata, p_request_ids, p_addresses, p_user_agents)
      AS n (tenant, agent, resource, metadata, request_id, address, user_agent);
END $$;
