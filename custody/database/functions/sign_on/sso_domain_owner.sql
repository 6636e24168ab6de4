-- Promises: The tenant that has proven an e-mail domain, its row with the MAC, and its enabled identity providers.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION sso_domain_owner(p_domain text)
RETURNS TABLE (tenant_id text, domain text, sso_required boolean, token text, verified_at timestamptz,
               checked_at timestamptz, missing_since timestamptz, absences integer, created_at timestamptz, mac bytea,
               saml boolean, oidc text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT d.tenant_id, d.domain, d.sso_required, d.token, d.verified_at, d.checked_at, d.missing_since, d.absences,
         d.created_at, d.mac, p.saml, p.oidc
    FROM sso_domains d, sign_on_providers(d.tenant_id) p
   WHERE d.domain = p_domain AND d.verified_at IS NOT NULL
$$;
