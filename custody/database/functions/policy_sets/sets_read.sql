-- Promises: The policy sets of an agent, the one of every agent and the one that it names: version, MAC, rules, and of
--   each asset what counts for all of the set's agents, of a day, of a week and ever; as JSON.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION sets_read(p_tenant text, p_agent text, p_now timestamptz) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT json_agg(json_build_array(s.id, s.version, encode(s.mac, 'hex'), s.rules, (
             SELECT COALESCE(json_object_agg(t.asset, json_build_array(w.day::text, w.week::text, t.amount::text)),
                             '{}')
               FROM set_totals t, LATERAL set_windows(p_tenant, s.id, t.asset, p_now) w
              WHERE t.tenant_id = p_tenant AND t.set_id = s.id)) ORDER BY s.id)::text
            FROM policy_sets s
           WHERE s.tenant_id = p_tenant
             AND s.id IN ('tenant', (SELECT a.policy_set FROM agents a
                                      WHERE a.tenant_id = p_tenant AND a.id = p_agent)));
END $$;
