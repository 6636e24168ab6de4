-- Promises: One page of all tenants, the newest first, with their number as far as it is counted.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION platform_tenants(p_limit integer, p_offset integer, p_counted bigint)
RETURNS TABLE (id text, name text, frozen_at timestamptz, created_at timestamptz, total bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t.id, t.name, t.frozen_at, t.created_at, (SELECT count(*) FROM (SELECT FROM tenants LIMIT p_counted) c)
    FROM tenants t ORDER BY t.created_at DESC, t.id LIMIT p_limit OFFSET p_offset
$$;
