-- Promises: Changes a route if it and its secret, if it has one, are still as read. stale: nothing was written,
--   read again.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION change_credential_route(p_tenant text, p_credential credential, p_act act, p_id uuid, p_old_mac bytea,
                                        p_secret uuid, p_secret_version integer, p_fields text, p_priority integer,
                                        p_mac bytea) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  -- Deleted or not: a route of a deleted secret can still be changed, its value is gone.
  IF p_secret IS NOT NULL AND NOT EXISTS (
       SELECT FROM secrets WHERE tenant_id = p_tenant AND id = p_secret AND version = p_secret_version) THEN
    RETURN 'stale';
  END IF;
  UPDATE credential_routes SET fields = p_fields, priority = p_priority, mac = p_mac
   WHERE tenant_id = p_tenant AND id = p_id AND mac = p_old_mac;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM end_credential_change(p_tenant, p_act, 'credential_route.changed', 'credential_route', p_id);
  RETURN 'done';
END $$;
