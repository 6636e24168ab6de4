-- Promises: Makes a failed message due for one more attempt: done, absent, unfailed, enough (p_most attempts) or
--   disabled.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION retry_notice(p_tenant text, p_id uuid, p_most integer) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE n record;
BEGIN
  SELECT m.status, m.attempts, c.enabled INTO n FROM notices m JOIN notification_channels c
      ON c.tenant_id = m.tenant_id AND c.id = m.channel_id AND c.user_id IS NULL AND c.deleted_at IS NULL
   WHERE m.tenant_id = p_tenant AND m.id = p_id FOR UPDATE OF m;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  IF n.status <> 'failed' THEN RETURN 'unfailed'; END IF;
  IF n.attempts >= p_most THEN RETURN 'enough'; END IF;
  IF NOT n.enabled THEN RETURN 'disabled'; END IF;
  UPDATE notices m SET next_retry_at = service_now(), max_attempts = GREATEST(m.max_attempts, m.attempts + 1)
   WHERE m.tenant_id = p_tenant AND m.id = p_id;
  RETURN 'done';
END $$;
