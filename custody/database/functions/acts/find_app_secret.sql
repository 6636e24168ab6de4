-- Promises: The tenant, app client and MACs of an app client's secret that is neither revoked nor retired.
-- Runs as: definer
-- Execute: api, signer, identity

CREATE FUNCTION find_app_secret(p_hash bytea)
RETURNS TABLE (tenant_id text, client_id text, prefix text, retires_at timestamptz, mac bytea, document text,
               enabled boolean, client_mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.tenant_id, s.client_id, s.prefix, s.retires_at, s.mac, c.document, c.enabled, c.mac
    FROM app_secrets s JOIN app_clients c ON c.tenant_id = s.tenant_id AND c.id = s.client_id
   WHERE s.secret_hash = p_hash AND s.revoked_at IS NULL AND (s.retires_at IS NULL OR s.retires_at > service_now())
$$;
