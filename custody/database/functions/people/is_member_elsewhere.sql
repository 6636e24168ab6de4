-- Promises: Whether a person is a member of another tenant than this one and their own.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION is_member_elsewhere(p_user uuid, p_tenant text, p_own text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT FROM memberships m WHERE m.user_id = p_user AND m.tenant_id NOT IN (p_tenant, p_own))
$$;
