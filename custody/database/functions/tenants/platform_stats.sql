-- Promises: How many tenants, agents and transactions there are.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION platform_stats() RETURNS TABLE (tenants bigint, agents bigint, transactions bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT (SELECT count(*) FROM tenants), (SELECT count(*) FROM agents), (SELECT count(*) FROM transactions)
$$;
