-- Promises: The charge of a call, and the route that it went by as it is now. No row: no such charge.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION charge_read(p_tenant text, p_id uuid)
RETURNS TABLE (agent_id text, route_id uuid, micro_usd bigint, secret_id uuid, fields text, mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT c.agent_id, c.route_id, c.micro_usd, r.secret_id, r.fields, r.mac
    FROM call_charges c LEFT JOIN credential_routes r ON r.tenant_id = p_tenant AND r.id = c.route_id
   WHERE c.tenant_id = p_tenant AND c.id = p_id;
END $$;
