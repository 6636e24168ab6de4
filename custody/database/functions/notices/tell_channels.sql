-- Promises: Tells every other living channel of a tenant, and its owners by mail, what was done to one of them;
--   p_farewell is said on that channel itself, a last time.
-- Runs as: definer
-- Execute: identity

CREATE FUNCTION tell_channels(p_tenant text, p_channel uuid, p_farewell text, p_said text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now();
BEGIN
  INSERT INTO notices (tenant_id, channel_id, kind, purpose, said, max_attempts, next_retry_at)
  SELECT c.tenant_id, c.id, c.kind, 'change', ARRAY[p_said], 5, v_now FROM notification_channels c
   WHERE c.tenant_id = p_tenant AND c.id <> p_channel AND c.enabled AND c.deleted_at IS NULL;
  INSERT INTO notices (tenant_id, channel_id, kind, purpose, said, max_attempts, next_retry_at)
  SELECT c.tenant_id, c.id, c.kind, 'farewell', ARRAY[p_farewell], 1, v_now FROM notification_channels c
   WHERE c.tenant_id = p_tenant AND c.id = p_channel AND p_farewell IS NOT NULL AND c.enabled;
  -- Whose owner it is, with an address that they have proven, and not more often than ten times an hour.
  INSERT INTO notices (tenant_id, user_id, kind, purpose, said, max_attempts, next_retry_at)
  SELECT m.tenant_id, m.user_id, 'email', 'change', ARRAY[p_said], 5, v_now
    FROM memberships m JOIN users u ON u.id = m.user_id
   WHERE m.tenant_id = p_tenant AND m.role = 'owner' AND u.deactivated_at IS NULL
     AND EXISTS (SELECT FROM identities i WHERE i.user_id = m.user_id AND i.kind = 'email' AND i.tenant_id IS NULL
                    AND i.verified)
     AND 10 > (SELECT count(*) FROM notices n WHERE n.tenant_id = p_tenant AND n.user_id = m.user_id
                  AND n.channel_id IS NULL AND n.created_at > v_now - interval '1 hour');
END $$;
