-- Promises: One agent as the api shows it, with what its tokens are checked against.
-- Runs as: caller
-- Execute: api, signer

CREATE FUNCTION agent_get(p_tenant text, p_agent text)
RETURNS TABLE (id text, name text, display_name text, platform_id text, erc8004_token_id text, wallets text,
               previous text, created_at timestamptz, frozen_at timestamptz, frozen_reason text, incarnation uuid,
               token_epoch integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.id, a.name, a.display_name, a.platform_id, a.erc8004_token_id,
      (SELECT json_object_agg(w.family, w.address)::text FROM wallets w
        WHERE w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.scope = ''),
      (SELECT json_agg(json_build_array(w.family, w.address) ORDER BY w.created_at, w.scope)::text FROM wallets w
        WHERE w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.scope LIKE 'before:%'),
                      a.created_at, a.frozen_at, a.frozen_reason,
                      a.incarnation, a.token_epoch
    FROM agents a WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
