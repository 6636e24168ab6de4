-- Promises: When the keys of a tenant's providers were last fetched, and why not, in a word; none of the keys.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION provider_key_states(p_tenant text)
RETURNS TABLE (provider text, fetched_at timestamptz, problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.provider, k.fetched_at, k.problem FROM provider_keys k WHERE k.tenant_id = p_tenant
$$;
