-- Promises: A policy set as it stands. No row: no such set.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION policy_set_read(p_tenant text, p_id text)
RETURNS TABLE (name text, version bigint, rules text, mac bytea, created_at timestamptz, named bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT s.name, s.version, s.rules, s.mac, s.created_at,
    (SELECT count(*) FROM agents a WHERE a.tenant_id = p_tenant AND a.policy_set = p_id)
    FROM policy_sets s WHERE s.tenant_id = p_tenant AND s.id = p_id;
END $$;
