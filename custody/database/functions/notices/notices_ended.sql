-- Promises: Settles notices that were taken up (delivered, failed, gone, unsent) and returns the ids that it could
--   look at.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION notices_ended(p_tenants text[], p_ids uuid[], p_attempts integer[], p_outcomes text[],
                              p_errors text[], p_statuses integer[], p_waits double precision[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := service_now();
  v_gone record;
BEGIN
  -- Channels before notices, as everybody locks them.
  FOR v_gone IN
    SELECT DISTINCT n.tenant_id, n.channel_id FROM notices n
      JOIN unnest(p_tenants, p_ids, p_attempts, p_outcomes) AS t (tenant_id, id, attempt, outcome)
        ON n.tenant_id = t.tenant_id AND n.id = t.id AND n.attempts = t.attempt AND t.outcome = 'gone'
     WHERE n.status = 'processing' AND n.channel_id IS NOT NULL ORDER BY 1, 2
  LOOP
    UPDATE notification_channels c SET enabled = false, disabled_reason = 'The receiver is gone.'
     WHERE c.tenant_id = v_gone.tenant_id AND c.id = v_gone.channel_id AND c.enabled AND c.deleted_at IS NULL;
    CONTINUE WHEN NOT FOUND;
    PERFORM set_config('custody.tenant', v_gone.tenant_id, true);
    PERFORM audit_append('system', 'scheduler', 'delivery.channel_disabled', 'notification_channel',
      v_gone.channel_id::text, '{"reason":"gone"}', NULL);
    PERFORM tell_channels(v_gone.tenant_id, v_gone.channel_id, NULL,
      '{"event":"channel.changed","by":"the service","what":"disabled, for its receiver is gone"}');
  END LOOP;
  PERFORM FROM notification_channels c WHERE (c.tenant_id, c.id) IN (
      SELECT n.tenant_id, n.channel_id FROM notices n JOIN unnest(p_tenants, p_ids) AS t (tenant_id, id)
          ON n.tenant_id = t.tenant_id AND n.id = t.id)
   ORDER BY c.tenant_id, c.id FOR NO KEY UPDATE;

  -- A row that somebody else holds is skipped and named the next time.
  RETURN QUERY
  WITH told AS (
    SELECT * FROM unnest(p_tenants, p_ids, p_attempts, p_outcomes, p_errors, p_statuses, p_waits)
      AS u (tenant_id, id, attempt, outcome, error, status, wait)),
  mine AS (
    SELECT n.tenant_id, n.id FROM notices n JOIN told t ON n.tenant_id = t.tenant_id AND n.id = t.id
       FOR UPDATE OF n SKIP LOCKED),
  settled AS (
    UPDATE notices n
       SET status = CASE WHEN t.outcome = 'delivered' THEN 'delivered'
                         WHEN t.outcome = 'unsent' AND n.attempts = 1 THEN 'pending' ELSE 'failed' END,
           -- What never left is no attempt.
           attempts = n.attempts - CASE WHEN t.outcome = 'unsent' THEN 1 ELSE 0 END,
           delivered_at = CASE WHEN t.outcome = 'delivered' THEN v_now END,
           error = CASE WHEN t.outcome = 'unsent' THEN n.error ELSE t.error END,
           response_status = CASE WHEN t.outcome = 'unsent' THEN n.response_status ELSE t.status END,
           next_retry_at = CASE WHEN t.outcome = 'unsent' OR (t.outcome = 'failed' AND n.attempts < n.max_attempts)
                                THEN v_now + make_interval(secs => t.wait) END
      FROM mine m JOIN told t ON t.tenant_id = m.tenant_id AND t.id = m.id
     -- Who comes after the claim was over and somebody else has the next attempt changes nothing.
     WHERE n.tenant_id = m.tenant_id AND n.id = m.id AND n.status = 'processing' AND n.attempts = t.attempt
    RETURNING n.tenant_id, n.channel_id, t.outcome),
  stamped AS (
    UPDATE notification_channels c
       SET delivered_at = CASE s.outcome WHEN 'delivered' THEN v_now ELSE c.delivered_at END,
           taken_at = CASE s.outcome WHEN 'unsent' THEN NULL ELSE c.taken_at END
      FROM settled s WHERE c.tenant_id = s.tenant_id AND c.id = s.channel_id AND s.outcome IN ('delivered', 'unsent'))
  SELECT m.id FROM mine m;

  -- A browser that is gone comes back under another address: nothing of this one is kept.
  DELETE FROM notification_channels c
   USING unnest(p_tenants, p_ids, p_outcomes) AS t (tenant_id, id, outcome), notices n
   WHERE t.outcome = 'gone' AND n.tenant_id = t.tenant_id AND n.id = t.id AND n.error = 'gone'
     AND c.tenant_id = n.tenant_id AND c.id = n.channel_id AND c.kind = 'webpush';
END $$;
