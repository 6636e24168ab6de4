-- Promises: What a message may be sent by: its channel, or the owner whom it is mailed to. No row: by nothing, for the
--   channel is off, or its person is not of the team any more.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION channel_due(p_tenant text, p_notice uuid)
RETURNS TABLE (tenant_id text, id uuid, user_id uuid, kind text, owner_user uuid, is_last boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT n.tenant_id, c.id, c.user_id, n.kind, CASE WHEN c.id IS NULL THEN n.user_id END, n.purpose = 'farewell'
    FROM notices n LEFT JOIN notification_channels c ON c.tenant_id = n.tenant_id AND c.id = n.channel_id
   WHERE n.tenant_id = p_tenant AND n.id = p_notice
     AND (n.channel_id IS NULL OR (c.enabled AND (c.deleted_at IS NOT NULL) = (n.purpose = 'farewell')))
     AND (c.user_id IS NULL OR EXISTS (
       SELECT FROM memberships m JOIN users u ON u.id = m.user_id AND u.deactivated_at IS NULL
        WHERE m.tenant_id = n.tenant_id AND m.user_id = c.user_id AND m.role <> 'member'));
END $$;
