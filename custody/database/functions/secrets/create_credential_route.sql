-- Promises: Creates a route for a secret of the expected version, or for none. stale: read again; full: the
--   tenant has as many routes of both kinds as it may.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION create_credential_route(p_tenant text, p_credential credential, p_act act, p_id uuid, p_secret uuid,
                                        p_secret_version integer, p_fields text, p_priority integer, p_mac bytea,
                                        p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  IF p_secret IS NOT NULL AND NOT EXISTS (
       SELECT FROM secrets WHERE tenant_id = p_tenant AND id = p_secret AND version = p_secret_version
           AND deleted_at IS NULL) THEN
    RETURN 'stale';
  END IF;
  IF (SELECT count(*) FROM credential_routes WHERE tenant_id = p_tenant)
     + (SELECT count(*) FROM payment_routes WHERE tenant_id = p_tenant) >= 10000 THEN
    RETURN 'full';
  END IF;
  INSERT INTO credential_routes (tenant_id, id, secret_id, fields, priority, mac, created_at)
  VALUES (p_tenant, p_id, p_secret, p_fields, p_priority, p_mac, p_now);
  PERFORM end_credential_change(p_tenant, p_act, 'credential_route.created', 'credential_route', p_id);
  RETURN 'done';
END $$;
