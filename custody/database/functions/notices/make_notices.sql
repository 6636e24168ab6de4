-- Promises: Puts published events into the notices of the channels that want them: into one that is due soon enough,
--   else into a new one. p_names, p_notices, p_loud: what notice each event is, and whether quiet hours hold it.
-- Runs as: definer
-- Execute: nobody

CREATE FUNCTION make_notices(p_tenants text[], p_numbers bigint[], p_names text[], p_notices text[], p_loud boolean[],
                             p_defaults text[], p_most integer, p_attempts integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := service_now();
  v_batch interval := interval '2 seconds';
  v_pause interval := interval '60 seconds';
  w record;
BEGIN
  FOR w IN
    WITH told AS (
      SELECT e.tenant_id, e.number, e.event, k.notice, k.loud, e.data, e.created_at
        FROM unnest(p_tenants, p_numbers) AS u (tenant_id, number)
        JOIN unnest(p_names, p_notices, p_loud) AS k (event, notice, loud) ON true
        JOIN events e ON e.tenant_id = u.tenant_id AND e.number = u.number AND e.event = k.event
       WHERE EXISTS (SELECT FROM notification_channels c WHERE c.tenant_id = u.tenant_id AND c.deleted_at IS NULL)
         AND CASE e.event WHEN 'spend.threshold' THEN (e.data::json->>'percent')::integer >= 80
                          WHEN 'policies.changed' THEN e.data::json->>'change' = 'looser' ELSE true END),
    timed AS (
      SELECT t.*, CASE WHEN t.notice = 'expiring' THEN
               -- At three quarters of its life.
               (SELECT a.requested_at + (a.expires_at - a.requested_at) * 0.75 FROM approvals a
                 WHERE t.event = 'tx.pending' AND a.tenant_id = t.tenant_id
                   AND a.id = (t.data::json->>'approvalId')::uuid
                UNION ALL
                SELECT i.created_at + (i.expires_at - i.created_at) * 0.75 FROM intents i
                 WHERE t.event = 'intent.created' AND i.tenant_id = t.tenant_id
                   AND i.id = (t.data::json->>'intentId')::uuid)
             ELSE v_now END AS at
        FROM told t),
    wanted AS (
      SELECT c.tenant_id, c.id, c.kind, c.taken_at, t.number,
             CASE WHEN t.loud THEN t.at
                  ELSE quiet_until(t.at + CASE WHEN t.notice = 'waiting' THEN make_interval(mins => c.after_minutes)
                                               ELSE interval '0' END, c.quiet_start, c.quiet_end, c.quiet_zone)
             END AS earliest
        FROM timed t
        JOIN notification_channels c ON c.tenant_id = t.tenant_id AND c.enabled AND c.deleted_at IS NULL
         AND t.notice = ANY (COALESCE(c.events, p_defaults))
       WHERE t.at IS NOT NULL)
    SELECT tenant_id, id, kind, earliest, GREATEST(earliest + v_batch, taken_at + v_pause) AS due,
           array_agg(number ORDER BY number) AS numbers
      FROM wanted GROUP BY tenant_id, id, kind, earliest, taken_at ORDER BY tenant_id, id, earliest
  LOOP
    UPDATE notices n
       SET numbers = n.numbers || w.numbers[1:GREATEST(0, p_most - cardinality(n.numbers))],
           more = n.more + cardinality(w.numbers)
                - LEAST(cardinality(w.numbers), GREATEST(0, p_most - cardinality(n.numbers)))
     WHERE n.tenant_id = w.tenant_id AND n.id = (
       SELECT o.id FROM notices o
        WHERE o.tenant_id = w.tenant_id AND o.channel_id = w.id AND o.status = 'pending' AND o.attempts = 0
          AND o.purpose = 'events' AND o.next_retry_at <= w.due
          AND (w.earliest <= v_now OR o.next_retry_at >= w.earliest)
        ORDER BY o.next_retry_at LIMIT 1 FOR UPDATE SKIP LOCKED);
    CONTINUE WHEN FOUND;
    INSERT INTO notices (tenant_id, channel_id, kind, numbers, more, max_attempts, next_retry_at)
    VALUES (w.tenant_id, w.id, w.kind, w.numbers[1:p_most], GREATEST(0, cardinality(w.numbers) - p_most), p_attempts,
            w.due);
  END LOOP;
END $$;
