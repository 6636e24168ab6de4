-- Promises: The prefix, scopes and MAC of a platform key that is not revoked.
-- Runs as: definer
-- Execute: api, signer, identity

CREATE FUNCTION find_platform_key(p_hash bytea) RETURNS TABLE (prefix text, scopes text[], mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT k.prefix, k.scopes, k.mac FROM platform_keys k WHERE k.key_hash = p_hash AND k.revoked_at IS NULL
$$;
