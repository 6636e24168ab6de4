-- Promises: The tenants that a person owns, their own left out, by id; alone: nobody else who is active owns it.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION owned_tenants(p_user uuid, p_own text) RETURNS TABLE (tenant_id text, alone boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.tenant_id, NOT EXISTS (
           SELECT FROM memberships o JOIN users u ON u.id = o.user_id AND u.deactivated_at IS NULL
            WHERE o.tenant_id = m.tenant_id AND o.user_id <> p_user AND o.role = 'owner')
    FROM memberships m WHERE m.user_id = p_user AND m.role = 'owner' AND m.tenant_id <> p_own
   ORDER BY m.tenant_id
$$;
