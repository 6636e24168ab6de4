-- Promises: What a tenant's configuration judges by, with its MAC. Version 0: never configured.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION config_read(p_tenant text)
RETURNS TABLE (version bigint, judging text, mac bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT COALESCE(c.version, 0), c.judging, c.mac
    FROM (SELECT p_tenant AS id) t LEFT JOIN tenant_config c ON c.tenant_id = t.id;
END $$;
