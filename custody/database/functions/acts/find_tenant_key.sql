-- Promises: The tenant, id, prefix, end and MAC of an API key that is neither revoked nor retired.
-- Runs as: definer
-- Execute: api, signer, identity

CREATE FUNCTION find_tenant_key(p_hash bytea)
RETURNS TABLE (tenant_id text, id uuid, prefix text, name text, retires_at timestamptz, mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.tenant_id, k.id, k.prefix, k.name, k.retires_at, k.mac FROM tenant_keys k
   WHERE k.key_hash = p_hash AND k.revoked_at IS NULL AND (k.retires_at IS NULL OR k.retires_at > service_now())
$$;
