-- Promises: Approvals of any tenant whose time is up. Two schedulers may find the same one: the signer expires each
--   once.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION due_approvals(p_limit integer) RETURNS TABLE (tenant_id text, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- Asked for once, or no index would do. Two schedulers may find the same: the signer expires each once.
  SELECT p.tenant_id, p.id FROM approvals p
   WHERE p.status = 'pending' AND p.expires_at IS NOT NULL AND p.expires_at <= (SELECT service_now())
   ORDER BY p.expires_at LIMIT p_limit
$$;
