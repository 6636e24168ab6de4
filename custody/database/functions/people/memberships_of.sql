-- Promises: One person's memberships, the oldest first, and no more than a page can show.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION memberships_of(p_user uuid)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user ORDER BY m.created_at, m.tenant_id LIMIT 1000
$$;
