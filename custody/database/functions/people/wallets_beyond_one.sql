-- Promises: Members of one tenant who have more than one linked wallet, a page of them, the newest members first.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION wallets_beyond_one(p_tenant text, p_limit integer, p_offset integer)
RETURNS TABLE (user_id uuid, role text, name text, email text, ids uuid[], kinds text[], subjects text[], total bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.user_id, m.role, p.name, p.email, w.ids, w.kinds, w.subjects, count(*) OVER ()
    FROM memberships m
    CROSS JOIN LATERAL (SELECT array_agg(i.id ORDER BY i.created_at, i.id) AS ids,
                               array_agg(i.kind ORDER BY i.created_at, i.id) AS kinds,
                               array_agg(i.subject ORDER BY i.created_at, i.id) AS subjects
                          FROM identities i
                         WHERE i.user_id = m.user_id AND i.kind IN ('wallet', 'contract', 'solana')) w
    CROSS JOIN LATERAL user_profile(m.user_id) p
   WHERE m.tenant_id = p_tenant AND cardinality(w.ids) > 1
   ORDER BY m.created_at DESC, m.user_id LIMIT p_limit OFFSET p_offset
$$;
