-- Promises: Claims key sets of any tenant that are to be fetched, for p_seconds each, those that wait longest first.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION due_provider_keys(p_limit integer, p_seconds integer)
RETURNS TABLE (tenant_id text, provider text, jwks_uri text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH due AS (
    SELECT k.tenant_id, k.provider FROM provider_keys k WHERE k.due_at <= service_now()
     ORDER BY k.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED)
  UPDATE provider_keys k SET asked_at = service_now(), due_at = service_now() + make_interval(secs => p_seconds)
    FROM due WHERE k.tenant_id = due.tenant_id AND k.provider = due.provider
  RETURNING k.tenant_id, k.provider, k.jwks_uri
$$;
