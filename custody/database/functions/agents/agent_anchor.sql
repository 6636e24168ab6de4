-- Promises: What a change of an agent's rules is decided on, in one round trip.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION agent_anchor(p_tenant text, p_agent text)
RETURNS TABLE (incarnation uuid, token_epoch integer, policy_version bigint, frozen boolean, head_version bigint,
               head_count integer, head_mac bytea, rules text, now timestamptz, ledger_version bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.policy_version,
    a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL, h.version, h.count, h.mac,
         (SELECT json_agg(json_build_array(r.id, r.type, r.enabled, r.config) ORDER BY r.position)::text
            FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent), service_now(), a.ledger_version
    FROM agents a JOIN tenants t ON t.id = a.tenant_id
    LEFT JOIN policy_heads h ON h.tenant_id = a.tenant_id AND h.agent_id = a.id
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
