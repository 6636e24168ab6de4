-- Promises: The tenant of a person who names none: their own, else the oldest.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION home_of(p_user uuid, p_own text)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user ORDER BY m.tenant_id <> p_own, m.created_at, m.tenant_id LIMIT 1
$$;
