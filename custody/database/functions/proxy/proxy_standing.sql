-- Promises: Whether an agent's tokens hold, and which version its tenant's routes have. No row: no such agent.
-- Runs as: caller
-- Execute: proxy

CREATE FUNCTION proxy_standing(p_tenant text, p_agent text)
RETURNS TABLE (incarnation uuid, token_epoch integer, frozen boolean, credential_version bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL,
    COALESCE(h.version, 0)
    FROM agents a JOIN tenants t ON t.id = p_tenant LEFT JOIN credential_heads h ON h.tenant_id = p_tenant
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
