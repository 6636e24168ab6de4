-- Promises: One person's membership in one tenant.
-- Runs as: definer
-- Execute: api, identity

CREATE FUNCTION membership_of(p_user uuid, p_tenant text)
RETURNS TABLE (tenant_id text, name text, role text, mac bytea, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, t.name, m.role, m.mac, m.created_at FROM memberships m JOIN tenants t ON t.id = m.tenant_id
   WHERE m.user_id = p_user AND m.tenant_id = p_tenant
$$;
