-- Promises: Everything that says whether a payment route serves an agent now, in one round trip. No row: no such
--   agent; no fields: no such route.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION pay_read(p_tenant text, p_agent text, p_id uuid)
RETURNS TABLE (incarnation uuid, token_epoch integer, frozen boolean, fields text, mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL, r.fields, r.mac
    FROM agents a JOIN tenants t ON t.id = p_tenant
    LEFT JOIN payment_routes r ON r.tenant_id = p_tenant AND r.id = p_id
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
