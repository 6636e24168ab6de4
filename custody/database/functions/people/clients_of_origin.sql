-- Promises: Enabled app clients that list an origin, of one tenant or of any, with their MACs; at most p_most of them.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION clients_of_origin(p_origin text, p_tenant text, p_most integer)
RETURNS TABLE (tenant_id text, client_id text, document text, mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT c.tenant_id, c.id, c.document, c.mac FROM app_clients c
   WHERE c.enabled AND (c.document::jsonb -> 'allowedOrigins') ? p_origin
     AND (p_tenant IS NULL OR c.tenant_id = p_tenant)
   LIMIT p_most
$$;
