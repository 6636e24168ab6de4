-- Promises: Those of a tenant's agents that have one of these ids, as the api shows them.
-- Runs as: caller
-- Execute: api

CREATE FUNCTION agents_named(p_tenant text, p_agents text[])
RETURNS TABLE (id text, name text, display_name text, platform_id text, erc8004_token_id text, wallets text,
               previous text, created_at timestamptz, frozen_at timestamptz, frozen_reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The wallets are looked up agent by agent: joined, a planner without statistics reads all that the tenant has.
  RETURN QUERY SELECT a.id, a.name, a.display_name, a.platform_id, a.erc8004_token_id,
      (SELECT json_object_agg(w.family, w.address)::text FROM wallets w
        WHERE w.tenant_id = p_tenant AND w.agent_id = a.id AND w.scope = ''),
      (SELECT json_agg(json_build_array(w.family, w.address) ORDER BY w.created_at, w.scope)::text FROM wallets w
        WHERE w.tenant_id = p_tenant AND w.agent_id = a.id AND w.scope LIKE 'before:%'),
                      a.created_at, a.frozen_at, a.frozen_reason
    FROM agents a WHERE a.tenant_id = p_tenant AND a.id = ANY (p_agents);
END $$;
