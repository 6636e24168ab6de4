-- Promises: Which versions of rows an order of this agent is judged on, beside what its own row says: another text as
--   soon as anybody wrote, removed or added one of them, by whatever way. So state that a signer kept is worth nothing
--   once a row behind it was touched.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION row_stamp(p_tenant text, p_agent text, p_family text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  -- In this language because Postgres keeps its plan; one in SQL it would plan at each call.
  RETURN format('%s/%s/%s/%s/%s',
    (SELECT c.xmin FROM tenant_config c WHERE c.tenant_id = p_tenant),
    (SELECT w.xmin FROM wallets w WHERE w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.family = p_family
        AND w.scope = ''),
    (SELECT h.xmin FROM policy_heads h WHERE h.tenant_id = p_tenant AND h.agent_id = p_agent),
    (SELECT s.xmin FROM sealed s WHERE s.tenant_id = p_tenant AND s.owner_kind = 'agent' AND s.owner = p_agent
        AND s.purpose = p_family),
    (SELECT string_agg(r.xmin::text, ',' ORDER BY r.position) FROM policy_rules r
      WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent));
END $$;
