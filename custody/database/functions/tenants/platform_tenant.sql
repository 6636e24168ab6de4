-- Promises: One tenant as the operator sees it, with the number of its agents.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION platform_tenant(p_id text)
RETURNS TABLE (id text, name text, frozen_at timestamptz, created_at timestamptz, agent_count bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t.id, t.name, t.frozen_at, t.created_at, (SELECT count(*) FROM agents a WHERE a.tenant_id = t.id)
    FROM tenants t WHERE t.id = p_id
$$;
