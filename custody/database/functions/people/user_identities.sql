-- Promises: What one person signs in with, the newest first; a thousand at most.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION user_identities(p_user uuid)
RETURNS TABLE (id uuid, kind text, subject text, verified boolean, created_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT i.id, i.kind, i.subject, i.verified, i.created_at FROM identities i WHERE i.user_id = p_user
   ORDER BY i.created_at DESC, i.id LIMIT 1000
$$;
