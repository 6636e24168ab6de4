-- Promises: How many living rows of a table each version of the master key made.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION sealed_versions(p_table text) RETURNS TABLE (version integer, count bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT %s, count(*) FROM %I WHERE %s GROUP BY 1', sealed_version(p_table), p_table,
    sealed_living(p_table));
END $$;
