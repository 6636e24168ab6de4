-- Promises: One person's living sessions, the last used first.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION user_sessions(p_user uuid)
RETURNS TABLE (id uuid, tenant_id text, provider text, amr text[], mfa_at timestamptz, created_at timestamptz,
               used_at timestamptz, expires_at timestamptz, ip_address text, user_agent text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT s.id, s.tenant_id, s.provider, s.amr, s.mfa_at, s.created_at, s.used_at, s.expires_at, s.ip_address,
    s.user_agent
    FROM sessions s WHERE s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > service_now()
   ORDER BY s.used_at DESC LIMIT 1000
$$;
