-- Promises: Deletes a channel of the tenant, or a browser of p_user, and its target where nothing more is said on it.
--   No row: no such channel.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION delete_channel(p_tenant text, p_id uuid, p_user uuid)
RETURNS TABLE (word text, kind text, id uuid, tenant_id text, user_id uuid)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  DELETE FROM identity_sealed s USING notification_channels c
   WHERE s.tenant_id = p_tenant AND s.channel_id = p_id AND c.tenant_id = p_tenant AND c.id = p_id AND NOT c.enabled
     AND (c.user_id IS NULL OR c.user_id = p_user);
  RETURN QUERY
  UPDATE notification_channels c SET deleted_at = service_now()
   WHERE c.tenant_id = p_tenant AND c.id = p_id AND (c.user_id IS NULL OR c.user_id = p_user)
     AND c.deleted_at IS NULL
  RETURNING 'done', c.kind, c.id, c.tenant_id, c.user_id;
END $$;
