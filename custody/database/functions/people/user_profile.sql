-- Promises: One person's name, address and wallet. The address is the one that they sign in with, else the one that a
--   provider showed, which was not proven here.
-- Runs as: definer
-- Execute: api, identity

CREATE FUNCTION user_profile(p_user uuid)
RETURNS TABLE (id uuid, name text, created_at timestamptz, email text, email_verified boolean, wallet text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT u.id, u.name, u.created_at, COALESCE(e.subject, u.profile_email),
         CASE WHEN e.subject IS NOT NULL THEN e.verified WHEN u.profile_email IS NOT NULL THEN false END,
         -- A contract's subject names its chain too, for the same address is another contract on another chain.
         (SELECT substring(i.subject FROM '[^:]+$') FROM identities i
           WHERE i.user_id = p_user AND i.kind IN ('wallet', 'contract', 'solana') ORDER BY i.created_at LIMIT 1)
    FROM users u
    LEFT JOIN LATERAL (SELECT i.subject, i.verified FROM identities i WHERE i.user_id = p_user AND i.kind = 'email'
                        ORDER BY i.created_at LIMIT 1) e ON true
   WHERE u.id = p_user
$$;
