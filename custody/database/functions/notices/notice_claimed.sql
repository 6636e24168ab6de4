-- Promises: Takes up one locked notice for p_seconds, fails it with its problem, or drops it where nothing is left to
--   tell (no row); returns it with what is undecided now.
-- Runs as: definer
-- Execute: nobody

CREATE FUNCTION notice_claimed(p_tenant text, p_id uuid, p_lane uuid, p_detail text, p_problem text,
                               p_numbers bigint[], p_more integer, p_said text[], p_seconds integer, p_shown integer)
RETURNS TABLE (tenant_id text, id uuid, endpoint_id uuid, channel_id uuid, user_id uuid, kind text, detail text,
               purpose text, attempt integer, problem text, due_at timestamptz, said text[], total integer,
               events text[], agents text[], names text[], ranks integer[], datas text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := service_now();
  v_total integer := 0;
  v_events text[];
  v_agents text[];
  v_names text[];
  v_ranks integer[];
  v_datas text[];
  v_due timestamptz;
BEGIN
  IF p_problem IS NULL AND cardinality(p_numbers) > 0 THEN
    WITH told AS (
      SELECT e.number, e.event, e.agent_id, e.data, e.created_at, g.name,
             COALESCE(a.expires_at, i.expires_at) AS expires_at, COALESCE(a.requested_at, i.created_at) AS asked_at,
             CASE WHEN e.event IN ('agent.frozen', 'tenant.frozen', 'breaker.tripped') THEN 0
                  WHEN e.event = 'policies.changed' THEN 1
                  WHEN COALESCE(a.expires_at, i.expires_at) IS NOT NULL
                   AND v_now >= COALESCE(a.requested_at, i.created_at)
                     + (COALESCE(a.expires_at, i.expires_at) - COALESCE(a.requested_at, i.created_at)) * 0.75 THEN 2
                  WHEN e.data LIKE '%"unlimited":true%' OR e.data LIKE '%"kind":"unread"%' THEN 3
                  WHEN e.event IN ('tx.pending', 'intent.created') THEN 4
                  ELSE 5 END AS rank
        FROM (SELECT DISTINCT x FROM unnest(p_numbers) x) u
        JOIN events e ON e.tenant_id = p_tenant AND e.number = u.x
        LEFT JOIN agents g ON g.tenant_id = p_tenant AND g.id = e.agent_id
        LEFT JOIN approvals a ON e.event = 'tx.pending' AND a.tenant_id = p_tenant
          AND a.id = CASE e.event WHEN 'tx.pending' THEN (e.data::json->>'approvalId')::uuid END
        LEFT JOIN intents i ON e.event = 'intent.created' AND i.tenant_id = p_tenant
          AND i.id = CASE e.event WHEN 'intent.created' THEN (e.data::json->>'intentId')::uuid END
       WHERE CASE e.event
               WHEN 'tx.pending' THEN a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > v_now)
               WHEN 'intent.created' THEN i.status = 'pending' AND i.expires_at > v_now
               ELSE true END),
    gravest AS (SELECT * FROM told ORDER BY rank, expires_at NULLS LAST, number LIMIT p_shown)
    SELECT (SELECT count(*) FROM told)::integer,
           array_agg(g.event ORDER BY g.rank, g.expires_at NULLS LAST, g.number),
           array_agg(g.agent_id ORDER BY g.rank, g.expires_at NULLS LAST, g.number),
           array_agg(g.name ORDER BY g.rank, g.expires_at NULLS LAST, g.number),
           array_agg(g.rank ORDER BY g.rank, g.expires_at NULLS LAST, g.number),
           array_agg(g.data ORDER BY g.rank, g.expires_at NULLS LAST, g.number)
      INTO v_total, v_events, v_agents, v_names, v_ranks, v_datas FROM gravest g;
  END IF;
  SELECT n.next_retry_at INTO v_due FROM notices n WHERE n.tenant_id = p_tenant AND n.id = p_id;
  IF p_problem IS NULL AND v_total = 0 AND cardinality(p_said) = 0 AND p_more = 0
     AND EXISTS (SELECT FROM notices n WHERE n.tenant_id = p_tenant AND n.id = p_id AND n.purpose = 'events') THEN
    UPDATE notices n SET status = 'dropped', next_retry_at = NULL WHERE n.tenant_id = p_tenant AND n.id = p_id;
    RETURN;
  END IF;
  IF p_problem IS NULL THEN
    UPDATE notification_channels c SET taken_at = v_now WHERE c.tenant_id = p_tenant AND c.id = p_lane;
  END IF;
  -- An attempt counts from here on, so that one whose outcome is lost is not made for ever. The claim ends by itself.
  RETURN QUERY
  UPDATE notices n
     SET status = CASE WHEN p_problem IS NULL THEN 'processing' ELSE 'failed' END,
         attempts = n.attempts + CASE WHEN p_problem IS NULL THEN 1 ELSE 0 END,
         next_retry_at = CASE WHEN p_problem IS NULL THEN v_now + make_interval(secs => p_seconds) END,
         tried_at = CASE WHEN p_problem IS NULL THEN v_now ELSE n.tried_at END,
         error = COALESCE(p_problem, n.error), numbers = p_numbers, more = p_more, said = p_said
   WHERE n.tenant_id = p_tenant AND n.id = p_id
  RETURNING n.tenant_id, n.id, p_lane, n.channel_id, n.user_id, n.kind, p_detail, n.purpose, n.attempts, p_problem,
            v_due, n.said, v_total + p_more, v_events, v_agents, v_names, v_ranks, v_datas;
END $$;
