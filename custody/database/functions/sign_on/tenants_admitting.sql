-- Promises: How many tenants have one of these keys in the names of their secrets' variables, counted up to two; a key
--   is a tenant's id in capitals with `_` for what no name may have.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION tenants_admitting(p_keys text[]) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*)::integer FROM (
    SELECT FROM tenants t
     WHERE regexp_replace(upper(t.id COLLATE "C"), '[^A-Z0-9_]', '_', 'g') = ANY(p_keys) LIMIT 2) AS admitted
$$;
