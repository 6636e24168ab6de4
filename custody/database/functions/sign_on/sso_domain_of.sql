-- Promises: One e-mail domain of one tenant, proven or not, with its MAC.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION sso_domain_of(p_tenant text, p_domain text) RETURNS SETOF sso_domains
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT d.* FROM sso_domains d WHERE d.tenant_id = p_tenant AND d.domain = p_domain
$$;
