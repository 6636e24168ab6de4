-- Promises: One person's passkeys, without their keys.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION user_passkeys(p_user uuid)
RETURNS TABLE (id uuid, name text, transports text[], created_at timestamptz, used_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT p.id, p.name, p.transports, p.created_at, p.used_at FROM passkeys p WHERE p.user_id = p_user
    ORDER BY p.created_at DESC
$$;
