-- Promises: The expression for the version of the master key in a row of this table. Raises for a table without
--   MACs.
-- Runs as: definer
-- Execute: nobody

CREATE FUNCTION sealed_version(p_table text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF p_table IN ('sealed', 'identity_sealed') THEN RETURN 'key_version_of(blob, 2)'; END IF;
  IF NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                  WHERE c.relnamespace = 'public'::regnamespace AND c.relname = p_table AND c.relkind = 'r'
                    AND a.attname = 'mac'
                    AND a.atttypid = 'bytea'::regtype) THEN
    RAISE EXCEPTION 'nothing in % has a MAC', p_table;
  END IF;
  RETURN 'key_version_of(mac, 1)';
END $$;
