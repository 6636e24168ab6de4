-- Promises: For each e-mail address of a person whose domain a tenant has: the row of either with its MAC, and the
--   tenant's enabled identity providers. What is not proven comes along: a changed row must not go unnoticed.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION sign_on_facts(p_user uuid, p_tenant text)
RETURNS TABLE (kind text, subject text, user_id uuid, identity_tenant text, verified boolean, blocked_at timestamptz,
               identity_mac bytea, tenant_id text, domain text, sso_required boolean, token text,
               verified_at timestamptz, checked_at timestamptz, missing_since timestamptz, absences integer,
               created_at timestamptz, mac bytea, saml boolean, oidc text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT i.kind, i.subject, i.user_id, i.tenant_id, i.verified, i.blocked_at, i.mac, d.tenant_id, d.domain,
         d.sso_required, d.token, d.verified_at, d.checked_at, d.missing_since, d.absences, d.created_at, d.mac,
         p.saml, p.oidc
    FROM identities i
    JOIN sso_domains d ON d.tenant_id = p_tenant AND d.domain = split_part(i.subject, '@', 2)
   CROSS JOIN sign_on_providers(p_tenant) p
   WHERE i.user_id = p_user AND i.kind = 'email'
$$;
