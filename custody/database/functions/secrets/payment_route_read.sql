-- Promises: One payment route as it was sealed.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION payment_route_read(p_tenant text, p_id uuid)
RETURNS TABLE (fields text, mac bytea, created_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.fields, r.mac, r.created_at FROM payment_routes r WHERE r.tenant_id = p_tenant AND r.id = p_id;
END $$;
