-- Promises: Raises the version of a tenant's secrets and routes, and ends the act as finish_act does.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION end_credential_change(p_tenant text, p_act act, p_action text, p_resource_type text, p_resource_id uuid)
RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- Begun with the time, so that a tenant that is made again never repeats a version of the one before it.
  INSERT INTO credential_heads AS h (tenant_id, version)
  VALUES (p_tenant, (extract(epoch FROM service_now()) * 1000000)::bigint)
  ON CONFLICT (tenant_id) DO UPDATE SET version = h.version + 1;
  PERFORM finish_act(p_tenant, p_act, p_action, p_resource_type, p_resource_id::text);
END $$;
