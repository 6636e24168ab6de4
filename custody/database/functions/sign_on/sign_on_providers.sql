-- Promises: Which identity providers of a tenant are enabled: SAML, and the ids of OIDC providers in their order.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION sign_on_providers(p_tenant text) RETURNS TABLE (saml boolean, oidc text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM saml_configs s WHERE s.tenant_id = p_tenant AND s.document::jsonb @> '{"enabled": true}'),
         ARRAY(SELECT o.id FROM oidc_providers o
                WHERE o.tenant_id = p_tenant AND o.document::jsonb @> '{"enabled": true}' ORDER BY o.place, o.id)
$$;
