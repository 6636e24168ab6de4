-- Promises: Changes an agent's name, and what else people and platforms call it (its display name, its id on the
--   tenant's platform, its ERC-8004 token) where that is asked. false: no such agent. Nothing that is judged depends
--   on any of it.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION rename_agent(p_tenant text, p_agent text, p_name text, p_sets_display_name boolean, p_display_name text,
                             p_sets_platform_id boolean, p_platform_id text, p_sets_token boolean, p_token text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE agents SET name = coalesce(p_name, name),
                    display_name = CASE WHEN p_sets_display_name THEN p_display_name ELSE display_name END,
                    platform_id = CASE WHEN p_sets_platform_id THEN p_platform_id ELSE platform_id END,
                    erc8004_token_id = CASE WHEN p_sets_token THEN p_token ELSE erc8004_token_id END
   WHERE tenant_id = p_tenant AND id = p_agent;
  RETURN FOUND;
END $$;
