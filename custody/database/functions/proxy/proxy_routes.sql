-- Promises: Every route of a tenant, enabled or not, in the order in which they are tried.
-- Runs as: caller
-- Execute: proxy

CREATE FUNCTION proxy_routes(p_tenant text)
RETURNS TABLE (id uuid, secret_id uuid, fields text, secret_name text, secret_version integer, secret_lost text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.id, r.secret_id, r.fields, s.name, s.version, secret_lost(s.deleted_at, s.expires_at)
    FROM credential_routes r LEFT JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
   WHERE r.tenant_id = p_tenant ORDER BY r.priority DESC, r.created_at, r.id;
END $$;
