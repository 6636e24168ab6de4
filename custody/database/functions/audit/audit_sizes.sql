-- Promises: How long these logs are; the signer compares that with what it remembers.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION audit_sizes(p_tenants text[]) RETURNS TABLE (tenant_id text, size bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t, COALESCE((SELECT c.size FROM audit_checkpoints c WHERE c.tenant_id = t ORDER BY c.size DESC LIMIT 1), 0)
    FROM unnest(p_tenants) AS t
$$;
