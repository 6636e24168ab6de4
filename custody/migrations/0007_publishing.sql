-- From the outbox to events with a number, from events to deliveries, and what becomes of a delivery by itself.

-- ---------------------------------------------------------------- a tenant takes its events along

-- A tenant that is made anew under an old id must not read what the old one did. The key also makes a publisher and a
-- deletion wait for each other; on the outbox it would cost every signature a lock on its tenant, so a trigger does it there.
ALTER TABLE events ADD FOREIGN KEY (tenant_id) REFERENCES tenants ON DELETE CASCADE;

CREATE FUNCTION forget_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM outbox WHERE tenant_id = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER forget_outbox AFTER DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION forget_outbox();

-- ---------------------------------------------------------------- publishing

CREATE INDEX outbox_order ON outbox (id);

CREATE FUNCTION publish_events(p_limit integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_ids bigint[];
  v_tenants text[];
BEGIN
  -- Two publishers at once could commit a higher number first, and who read up to that would miss the lower one.
  PERFORM pg_advisory_xact_lock(hashtextextended('custody-publisher', 0));
  SELECT array_agg(o.id) INTO v_ids FROM (SELECT id FROM outbox ORDER BY id LIMIT p_limit) AS o;
  WITH published AS (
    -- What a tenant left that is gone ends here.
    INSERT INTO events (tenant_id, id, event, agent_id, data, created_at)
    SELECT o.tenant_id, o.event_id, o.event, o.agent_id, o.data, o.created_at
      FROM outbox o JOIN tenants t ON t.id = o.tenant_id WHERE o.id = ANY (v_ids) ORDER BY o.id
    RETURNING tenant_id, number, event),
  wanted AS (
    INSERT INTO deliveries (tenant_id, endpoint_id, event_number, event, url, max_attempts, next_retry_at)
    SELECT w.tenant_id, w.id, p.number, p.event, w.url, w.max_retries + 1, service_now()
      FROM published p JOIN webhook_endpoints w ON w.tenant_id = p.tenant_id
     WHERE w.enabled AND w.deleted_at IS NULL AND (w.events IS NULL OR p.event = ANY (w.events))
     ORDER BY p.number)
  SELECT array_agg(DISTINCT p.tenant_id) INTO v_tenants FROM published p;
  -- After the tenants are locked, which the keys above do: a deletion locks its tenant first too.
  DELETE FROM outbox WHERE id = ANY (v_ids);
  -- Readers wake when this commits, and read the numbers that they have not yet.
  PERFORM pg_notify('custody_events', tenant) FROM unnest(v_tenants) AS u (tenant);
  RETURN COALESCE(cardinality(v_ids), 0);
EXCEPTION WHEN foreign_key_violation THEN
  -- A tenant was deleted meanwhile. Nothing was taken; its rows are not there the next time.
  RETURN 0;
END $$;

-- ---------------------------------------------------------------- what becomes of a delivery

-- An endpoint with a million open deliveries costs a claim no more than one with a single one.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_open ON deliveries (tenant_id, endpoint_id, next_retry_at) WHERE next_retry_at IS NOT NULL;

CREATE FUNCTION claim_deliveries(p_limit integer, p_seconds integer, p_room integer, p_endpoints uuid[], p_rooms integer[])
RETURNS TABLE (tenant_id text, id uuid, endpoint_id uuid, url text, attempt integer, problem text, retry_backoff_ms integer,
               due_at timestamptz, event_id uuid, event text, agent_id text, data text, created_at timestamptz, body text)
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
  -- An attempt counts from here on, so that one whose outcome is lost is not made for ever. The claim is over by itself.
  UPDATE deliveries d
     SET status = CASE WHEN due.problem IS NULL THEN 'processing' ELSE 'failed' END,
         attempts = d.attempts + CASE WHEN due.problem IS NULL THEN 1 ELSE 0 END,
         next_retry_at = CASE WHEN due.problem IS NULL THEN v_now + make_interval(secs => p_seconds) END,
         error = COALESCE(due.problem, d.error)
    FROM due WHERE d.tenant_id = due.tenant_id AND d.id = due.id
  RETURNING d.tenant_id, d.id, d.endpoint_id, d.url, d.attempts, due.problem, due.retry_backoff_ms, due.due_at,
            due.event_id, d.event, due.agent_id, due.data, due.created_at, d.body;
END $$;
COMMENT ON FUNCTION claim_deliveries IS
  'p_rooms: how many more attempts each endpoint of p_endpoints may have at once; p_room: one that is not named. With a problem: failed, not to be sent.';

CREATE FUNCTION deliveries_ended(p_tenants text[], p_ids uuid[], p_attempts integer[], p_outcomes text[], p_errors text[],
                                 p_statuses integer[], p_waits double precision[]) RETURNS SETOF uuid
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
    PERFORM audit_append('system', 'scheduler', 'delivery.endpoint_disabled', 'webhook', v_gone.id::text, '{"reason":"gone"}', NULL);
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
COMMENT ON FUNCTION deliveries_ended IS 'Outcomes: delivered, failed, gone, unsent. Gives back the ids that it could look at.';

-- ---------------------------------------------------------------- grants

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT, DELETE ON outbox TO custody_definer;
GRANT SELECT, INSERT ON events TO custody_definer;
GRANT SELECT, INSERT, UPDATE ON deliveries TO custody_definer;
GRANT SELECT, UPDATE (enabled, disabled_reason) ON webhook_endpoints TO custody_definer;
GRANT EXECUTE ON FUNCTION publish_events, claim_deliveries, deliveries_ended TO custody_scheduler;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION forget_outbox OWNER TO custody_definer;
ALTER FUNCTION publish_events OWNER TO custody_definer;
ALTER FUNCTION claim_deliveries OWNER TO custody_definer;
ALTER FUNCTION deliveries_ended OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
