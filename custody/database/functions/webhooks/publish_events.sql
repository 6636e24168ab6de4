-- Promises: Gives the oldest rows of the outbox their numbers as events, makes their deliveries and the notices of the
--   events that p_names names, and returns how many rows it took.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION publish_events(p_limit integer, p_names text[] DEFAULT '{}', p_notices text[] DEFAULT '{}',
                               p_loud boolean[] DEFAULT '{}', p_defaults text[] DEFAULT '{}',
                               p_most integer DEFAULT 0, p_attempts integer DEFAULT 1) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_ids bigint[];
  v_tenants text[];
  v_told text[];
  v_numbers bigint[];
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
  SELECT array_agg(DISTINCT p.tenant_id), array_agg(p.tenant_id) FILTER (WHERE p.event = ANY (p_names)),
         array_agg(p.number) FILTER (WHERE p.event = ANY (p_names))
    INTO v_tenants, v_told, v_numbers FROM published p;
  IF v_told IS NOT NULL THEN
    PERFORM make_notices(v_told, v_numbers, p_names, p_notices, p_loud, p_defaults, p_most, p_attempts);
  END IF;
  -- After the tenants are locked, which the keys above do: a deletion locks its tenant first too.
  DELETE FROM outbox WHERE id = ANY (v_ids);
  -- Readers wake when this commits, and read the numbers that they have not yet.
  PERFORM pg_notify('custody_events', tenant) FROM unnest(v_tenants) AS u (tenant);
  RETURN COALESCE(cardinality(v_ids), 0);
EXCEPTION WHEN foreign_key_violation THEN
  -- A tenant was deleted meanwhile. Nothing was taken; its rows are not there the next time.
  RETURN 0;
END $$;
