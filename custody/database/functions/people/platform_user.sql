-- Promises: One person as the operator sees them.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION platform_user(p_user uuid) RETURNS SETOF platform_person
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT u.id, u.name, u.image, COALESCE(e.subject, u.profile_email),
         -- An address that a tenant's identity provider named is only shown.
         CASE WHEN e.subject IS NOT NULL THEN e.verified WHEN u.profile_email IS NOT NULL THEN false END,
         w.kind, w.subject, u.custom_metadata, u.deactivated_at, u.created_at, COALESCE(u.updated_at, u.created_at),
         ARRAY(SELECT m.tenant_id FROM memberships m WHERE m.user_id = u.id
                ORDER BY m.created_at, m.tenant_id LIMIT 1000),
         (SELECT json_agg(json_build_array(i.id, i.kind, i.subject) ORDER BY i.created_at, i.id)::text FROM (
            SELECT * FROM identities l WHERE l.user_id = u.id AND l.kind <> 'email'
             ORDER BY l.created_at, l.id LIMIT 1000) i),
         (SELECT json_agg(json_build_array(x.tenant_id, x.external_id) ORDER BY x.created_at, x.tenant_id)::text FROM (
            SELECT * FROM wallet_external_ids y WHERE y.user_id = u.id
             ORDER BY y.created_at, y.tenant_id LIMIT 1000) x)
    FROM users u
    LEFT JOIN LATERAL (SELECT i.subject, i.verified FROM identities i WHERE i.user_id = u.id AND i.kind = 'email'
                        ORDER BY i.created_at, i.subject LIMIT 1) e ON true
    LEFT JOIN LATERAL (SELECT i.kind, i.subject FROM identities i
                        WHERE i.user_id = u.id AND i.kind IN ('wallet', 'contract', 'solana')
                        ORDER BY i.created_at, i.subject LIMIT 1) w ON true
   WHERE u.id = p_user
$$;
