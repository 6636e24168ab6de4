-- Promises: Whether the metadata of a row has this value at this path. A row that jsonb cannot read has none.
-- Runs as: caller
-- Execute: api

CREATE FUNCTION audit_says(p_metadata text, p_path text[], p_value text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE v_found jsonb;
BEGIN
  IF octet_length(p_metadata) > 65536 THEN RETURN false; END IF;
  v_found := p_metadata::jsonb #> p_path;
  RETURN jsonb_typeof(v_found) IN ('string', 'number', 'boolean') AND v_found #>> '{}' = p_value;
EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN
  -- A row may hold what jsonb cannot, such as a NUL in a string. It is shown, but not found by its metadata.
  RETURN false;
END $$;
