-- Promises: How many living tenants one person made.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION tenants_made_by(p_user uuid) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM tenants t WHERE t.made_by = p_user
$$;
