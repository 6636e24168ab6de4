-- Promises: Every payment route of a tenant, enabled or not, in the order in which they are tried.
-- Runs as: caller
-- Execute: proxy

CREATE FUNCTION proxy_payment_routes(p_tenant text) RETURNS TABLE (id uuid, fields text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.id, r.fields FROM payment_routes r
   WHERE r.tenant_id = p_tenant ORDER BY r.priority DESC, r.created_at, r.id;
END $$;
