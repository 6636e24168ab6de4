-- Promises: How many audit rows wait to be sealed, counted up to p_limit.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION audit_backlog(p_limit integer) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM (SELECT FROM audit_unsealed LIMIT p_limit) u
$$;
