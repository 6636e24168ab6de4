-- Promises: Intents of any tenant whose time is up, or that were left while a node was asked. Two schedulers may find
--   the same one: the signer ends each once.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION due_intents(p_limit integer) RETURNS TABLE (tenant_id text, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  (SELECT i.tenant_id, i.id FROM intents i
    WHERE i.status IN ('pending', 'authorized') AND i.expires_at <= (SELECT service_now())
    ORDER BY i.expires_at LIMIT p_limit)
  UNION ALL
  (SELECT i.tenant_id, i.id FROM intents i
    WHERE i.status = 'executing' AND i.updated_at <= (SELECT service_now()) - interval '60 seconds'
    ORDER BY i.updated_at LIMIT p_limit)
$$;
