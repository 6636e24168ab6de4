-- Promises: Settles claimed deliveries (delivered, failed, gone, unsent) and returns the ids that it could look at.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION deliveries_ended(p_tenants text[], p_ids uuid[], p_attempts integer[], p_outcomes text[],
                                 p_errors text[], p_statuses integer[], p_waits double precision[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := service_now();
  v_gone record;
BEGIN
  -- Endpoints before deliveries, as everybody locks them.
  FOR v_gone IN
    WITH gone AS (
      UPDATE webhook_endpoints w SET enabled = false, disabled_reason = 'The receiver answered 410 Gone.'
        FROM deliveries d JOIN unnest(p_tenants, p_ids, p_attempts, p_outcomes) AS t (tenant_id, id, attempt, outcome)
          ON d.tenant_id = t.tenant_id AND d.id = t.id AND t.outcome = 'gone'
       WHERE w.tenant_id = d.tenant_id AND w.id = d.endpoint_id AND w.enabled AND w.url = d.url
         AND d.status = 'processing' AND d.attempts = t.attempt
      RETURNING w.tenant_id, w.id)
    SELECT DISTINCT g.tenant_id, g.id FROM gone g
  LOOP
    PERFORM set_config('custody.tenant', v_gone.tenant_id, true);
    PERFORM audit_append('system', 'scheduler', 'delivery.endpoint_disabled', 'webhook', v_gone.id::text,
      '{"reason":"gone"}', NULL);
    -- Many are left to the claim, which fails them when they are due.
    UPDATE deliveries d SET status = 'failed', next_retry_at = NULL, error = 'endpoint_disabled'
     WHERE (d.tenant_id, d.id) IN (
       SELECT o.tenant_id, o.id FROM deliveries o
        WHERE o.tenant_id = v_gone.tenant_id AND o.endpoint_id = v_gone.id AND o.next_retry_at IS NOT NULL
          AND o.status <> 'processing' ORDER BY o.next_retry_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
  END LOOP;

  -- A row that somebody else holds is skipped and named the next time: waiting for it while holding others could be
  -- waited for in turn by the deletion of a tenant.
  RETURN QUERY
  WITH told AS (
    SELECT * FROM unnest(p_tenants, p_ids, p_attempts, p_outcomes, p_errors, p_statuses, p_waits)
      AS u (tenant_id, id, attempt, outcome, error, status, wait)),
  mine AS (
    SELECT d.tenant_id, d.id FROM deliveries d JOIN told t ON d.tenant_id = t.tenant_id AND d.id = t.id
       FOR UPDATE OF d SKIP LOCKED),
  settled AS (
    UPDATE deliveries d
       SET status = CASE WHEN t.outcome = 'delivered' THEN 'delivered'
                         WHEN t.outcome = 'unsent' AND d.attempts = 1 THEN 'pending' ELSE 'failed' END,
           -- What never left is no attempt.
           attempts = d.attempts - CASE WHEN t.outcome = 'unsent' THEN 1 ELSE 0 END,
           delivered_at = CASE WHEN t.outcome = 'delivered' THEN v_now END,
           error = CASE WHEN t.outcome = 'unsent' THEN d.error ELSE t.error END,
           response_status = CASE WHEN t.outcome = 'unsent' THEN d.response_status ELSE t.status END,
           next_retry_at = CASE WHEN t.outcome = 'unsent' OR (t.outcome = 'failed' AND d.attempts < d.max_attempts)
                                THEN v_now + make_interval(secs => t.wait) END
      FROM mine m JOIN told t ON t.tenant_id = m.tenant_id AND t.id = m.id
     -- Who comes after the claim was over and somebody else has the next attempt changes nothing.
     WHERE d.tenant_id = m.tenant_id AND d.id = m.id AND d.status = 'processing' AND d.attempts = t.attempt)
  SELECT m.id FROM mine m;
END $$;
