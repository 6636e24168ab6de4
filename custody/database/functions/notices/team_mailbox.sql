-- Promises: An address that somebody of the team has proven, with what vouches for it: this one (p_address), or the
--   first of an owner (p_owner).
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION team_mailbox(p_tenant text, p_address text, p_owner uuid)
RETURNS TABLE (kind text, subject text, user_id uuid, tenant_id text, verified boolean, blocked_at timestamptz,
               mac bytea, role text, member_since timestamptz, membership_mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT i.kind, i.subject, i.user_id, i.tenant_id, i.verified, i.blocked_at, i.mac, m.role, m.created_at, m.mac
    FROM memberships m JOIN users u ON u.id = m.user_id AND u.deactivated_at IS NULL
    JOIN identities i ON i.user_id = m.user_id AND i.kind = 'email' AND i.tenant_id IS NULL AND i.verified
   WHERE m.tenant_id = p_tenant AND m.role <> 'member' AND (p_address IS NULL OR i.subject = p_address)
     AND (p_owner IS NULL OR (m.user_id = p_owner AND m.role = 'owner'))
   ORDER BY i.created_at, i.subject LIMIT 1;
END $$;
