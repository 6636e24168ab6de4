-- Promises: Deletes a tenant with everything but its audit log. absent: no such tenant.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION delete_tenant(p_id text, p_platform_key bytea, p_act act) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_id, true);
  -- Many agents are locked in the order of their ids, so that two acts on several agents never wait for each other.
  PERFORM FROM agents WHERE tenant_id = p_id ORDER BY id FOR UPDATE;
  PERFORM FROM tenants WHERE id = p_id FOR UPDATE;
  -- Waited for first: the key must hold when the tenant goes, not when its deletion began to wait.
  PERFORM demand_platform_key(p_platform_key);
  DELETE FROM tenants WHERE id = p_id;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  PERFORM set_config('custody.tenant', 'platform', true);
  PERFORM finish_act('platform', p_act, 'tenant.deleted', 'tenant', p_id);
  RETURN 'done';
END $$;
