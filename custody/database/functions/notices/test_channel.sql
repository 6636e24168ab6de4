-- Promises: Makes one message that says it is a test: done, absent, disabled, or tested in the last minute.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION test_channel(p_tenant text, p_id uuid, p_notice uuid) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE c record;
BEGIN
  SELECT o.kind, o.enabled INTO c FROM notification_channels o
   WHERE o.tenant_id = p_tenant AND o.id = p_id AND o.user_id IS NULL AND o.deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  IF NOT c.enabled THEN RETURN 'disabled'; END IF;
  IF EXISTS (SELECT FROM notices n WHERE n.tenant_id = p_tenant AND n.channel_id = p_id AND n.purpose = 'test'
                AND (n.next_retry_at IS NOT NULL OR n.created_at > service_now() - interval '1 minute')) THEN
    RETURN 'tested';
  END IF;
  INSERT INTO notices (tenant_id, id, channel_id, kind, purpose, said, max_attempts, next_retry_at)
  VALUES (p_tenant, p_notice, p_id, c.kind, 'test', ARRAY['{"event":"channel.test"}'], 1, service_now());
  RETURN 'done';
END $$;
