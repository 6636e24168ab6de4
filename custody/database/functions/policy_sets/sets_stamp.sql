-- Promises: Which versions of rows the policy sets of an agent have, the one of every agent and the one that it names,
--   as Postgres numbers them; null where there is none.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION sets_stamp(p_tenant text, p_agent text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT string_agg(s.id || '/' || s.xmin::text, ',' ORDER BY s.id) FROM policy_sets s
           WHERE s.tenant_id = p_tenant
             AND s.id IN ('tenant', (SELECT a.policy_set FROM agents a
                                      WHERE a.tenant_id = p_tenant AND a.id = p_agent)));
END $$;
