-- Promises: A page of a tenant's agents as the api shows them, newest first, those with one platform id or all, and
--   how many there are, counted up to a bound: one row with nothing but that where the page is empty.
-- Runs as: caller
-- Execute: api

CREATE FUNCTION agents_page(p_tenant text, p_platform_id text, p_limit integer, p_offset integer, p_counted bigint)
RETURNS TABLE (total bigint, id text, name text, display_name text, platform_id text, erc8004_token_id text,
               wallets text, previous text, created_at timestamptz, frozen_at timestamptz, frozen_reason text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The count is always there, so it comes first. The wallets are looked up agent by agent: joined, a planner without
  -- statistics reads all that the tenant has.
  RETURN QUERY SELECT n.total, p.id, p.name, p.display_name, p.platform_id, p.erc8004_token_id,
                      (SELECT json_object_agg(w.family, w.address)::text FROM wallets w
                        WHERE w.tenant_id = p_tenant AND w.agent_id = p.id AND w.scope = ''),
                      (SELECT json_agg(json_build_array(w.family, w.address) ORDER BY w.created_at, w.scope)::text
                         FROM wallets w
                        WHERE w.tenant_id = p_tenant AND w.agent_id = p.id AND w.scope LIKE 'before:%'),
                      p.created_at, p.frozen_at, p.frozen_reason
    FROM (SELECT count(*) AS total FROM (
            SELECT FROM agents a
             WHERE a.tenant_id = p_tenant AND (p_platform_id IS NULL OR a.platform_id = p_platform_id)
             ORDER BY a.created_at DESC LIMIT p_counted) c) n
    LEFT JOIN (SELECT a.id, a.name, a.display_name, a.platform_id, a.erc8004_token_id, a.created_at, a.frozen_at,
                      a.frozen_reason
                 FROM agents a
                WHERE a.tenant_id = p_tenant AND (p_platform_id IS NULL OR a.platform_id = p_platform_id)
                ORDER BY a.created_at DESC, a.id LIMIT p_limit OFFSET p_offset) p ON true
   ORDER BY p.created_at DESC, p.id;
END $$;
