-- Promises: One page of a tenant's members as people, the newest first, with their role, their external id there, and
--   how many there are, counted up to a bound. With an external id only the member who has it.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION tenant_users(p_tenant text, p_external_id text, p_limit integer, p_offset integer,
                             p_counted bigint)
RETURNS TABLE (person platform_person, role text, since timestamptz, external_id text, total bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  IF p_external_id IS NOT NULL THEN
    RETURN QUERY SELECT p, m.role, m.created_at, x.external_id, 1::bigint
      FROM wallet_external_ids x JOIN memberships m ON m.tenant_id = x.tenant_id AND m.user_id = x.user_id,
           LATERAL platform_user(x.user_id) p
     WHERE x.tenant_id = p_tenant AND x.external_id = p_external_id LIMIT p_limit OFFSET p_offset;
  ELSE
    RETURN QUERY SELECT p, m.role, m.created_at, x.external_id,
           (SELECT count(*) FROM (SELECT FROM memberships n WHERE n.tenant_id = p_tenant LIMIT p_counted) c)
      FROM (SELECT * FROM memberships n WHERE n.tenant_id = p_tenant ORDER BY n.created_at DESC, n.user_id
             LIMIT p_limit OFFSET p_offset) m
      LEFT JOIN wallet_external_ids x ON x.tenant_id = p_tenant AND x.user_id = m.user_id,
           LATERAL platform_user(m.user_id) p
     ORDER BY m.created_at DESC, m.user_id;
  END IF;
END $$;
