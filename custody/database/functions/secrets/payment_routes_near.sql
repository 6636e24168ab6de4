-- Promises: The payment routes of a tenant that may be for a host, in the order in which they are tried: those that
--   begin with it, and those with a star.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION payment_routes_near(p_tenant text, p_host text) RETURNS TABLE (id uuid, fields text, mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.id, r.fields, r.mac FROM payment_routes r
   WHERE r.tenant_id = p_tenant AND (starts_with(r.fields::json ->> 'hostPattern', p_host)
                                     OR position('*' IN r.fields::json ->> 'hostPattern') > 0)
   ORDER BY r.priority DESC, r.created_at, r.id;
END $$;
