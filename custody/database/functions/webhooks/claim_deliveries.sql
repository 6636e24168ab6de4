-- Promises: Claims due deliveries of any tenant for p_seconds. p_rooms: how many more attempts each endpoint of
--   p_endpoints may have at once; p_room: one that is not named. With a problem: failed, not to be sent.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_deliveries(p_limit integer, p_seconds integer, p_room integer, p_endpoints uuid[],
                                 p_rooms integer[])
RETURNS TABLE (tenant_id text, id uuid, endpoint_id uuid, url text, attempt integer, problem text,
               retry_backoff_ms integer, due_at timestamptz, event_id uuid, event text, agent_id text,
               data text, created_at timestamptz, body text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now();
BEGIN
  RETURN QUERY
  WITH RECURSIVE waiting (tenant_id, endpoint_id) AS (
    -- From one endpoint with open deliveries to the next, without reading the deliveries between.
    (SELECT d.tenant_id, d.endpoint_id FROM deliveries d WHERE d.next_retry_at IS NOT NULL
      ORDER BY d.tenant_id, d.endpoint_id LIMIT 1)
    UNION ALL
    SELECT n.tenant_id, n.endpoint_id FROM waiting w CROSS JOIN LATERAL (
      SELECT d.tenant_id, d.endpoint_id FROM deliveries d
       WHERE d.next_retry_at IS NOT NULL AND (d.tenant_id, d.endpoint_id) > (w.tenant_id, w.endpoint_id)
       ORDER BY d.tenant_id, d.endpoint_id LIMIT 1) AS n),
  due AS (
    SELECT d.tenant_id, d.id, d.due_at, e.id AS event_id, e.agent_id, e.data, e.created_at, w.retry_backoff_ms,
           CASE WHEN w.deleted_at IS NOT NULL THEN 'endpoint_deleted'
                WHEN NOT w.enabled THEN 'endpoint_disabled'
                WHEN w.url <> d.url THEN 'endpoint_changed'
                WHEN d.body IS NULL AND e.id IS NULL THEN 'event_forgotten'
                -- Whoever had the last attempt died with its outcome.
                WHEN d.attempts >= d.max_attempts THEN 'outcome_unknown' END AS problem
      FROM waiting n
      JOIN webhook_endpoints w ON w.tenant_id = n.tenant_id AND w.id = n.endpoint_id
      LEFT JOIN unnest(p_endpoints, p_rooms) AS known (endpoint, room) ON known.endpoint = n.endpoint_id
     CROSS JOIN LATERAL (
      SELECT o.tenant_id, o.id, o.url, o.body, o.attempts, o.max_attempts, o.event_number, o.next_retry_at AS due_at
        FROM deliveries o
       WHERE o.tenant_id = n.tenant_id AND o.endpoint_id = n.endpoint_id AND o.next_retry_at <= v_now
       ORDER BY o.next_retry_at
       LIMIT CASE WHEN w.enabled AND w.deleted_at IS NULL THEN COALESCE(known.room, p_room) ELSE 100 END
         FOR UPDATE SKIP LOCKED) AS d
      LEFT JOIN events e ON e.tenant_id = d.tenant_id AND e.number = d.event_number
     -- Where all room is taken, those go first of whose deliveries none is under way.
     ORDER BY known.endpoint IS NOT NULL, d.due_at LIMIT p_limit)
  -- An attempt counts from here on, so that one whose outcome is lost is not made for ever. The claim is over by
  -- itself.
  UPDATE deliveries d
     SET status = CASE WHEN due.problem IS NULL THEN 'processing' ELSE 'failed' END,
         attempts = d.attempts + CASE WHEN due.problem IS NULL THEN 1 ELSE 0 END,
         next_retry_at = CASE WHEN due.problem IS NULL THEN v_now + make_interval(secs => p_seconds) END,
         error = COALESCE(due.problem, d.error)
    FROM due WHERE d.tenant_id = due.tenant_id AND d.id = due.id
  RETURNING d.tenant_id, d.id, d.endpoint_id, d.url, d.attempts, due.problem, due.retry_backoff_ms, due.due_at,
            due.event_id, d.event, due.agent_id, due.data, due.created_at, d.body;
END $$;
