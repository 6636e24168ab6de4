-- Promises: One person's name, address and wallet.
-- Runs as: definer
-- Execute: api, identity

CREATE FUNCTION user_profile(p_user uuid)
RETURNS TABLE (id uuid, name text, created_at timestamptz, email text, wallet text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT u.id, u.name, u.created_at,
         (SELECT i.subject FROM identities i WHERE i.user_id = p_user AND i.kind = 'email'
           ORDER BY i.created_at LIMIT 1),
         -- A contract's subject names its chain too, for the same address is another contract on another chain.
         (SELECT substring(i.subject FROM '[^:]+$') FROM identities i
           WHERE i.user_id = p_user AND i.kind IN ('wallet', 'contract', 'solana') ORDER BY i.created_at LIMIT 1)
    FROM users u WHERE u.id = p_user
$$;
