-- Promises: Takes up due notices of any tenant for p_seconds, one a channel and minute, with what came to be due beside
--   it, and says how much is undecided now, and the gravest p_shown. With a problem: failed, not to be sent.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_notices(p_limit integer, p_seconds integer, p_mails integer, p_shown integer)
RETURNS TABLE (tenant_id text, id uuid, endpoint_id uuid, channel_id uuid, user_id uuid, kind text, detail text,
               purpose text, attempt integer, problem text, due_at timestamptz, said text[], total integer,
               events text[], agents text[], names text[], ranks integer[], datas text[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := service_now();
  c record;
  n record;
  v_numbers bigint[];
  v_more integer;
  v_said text[];
BEGIN
  FOR c IN
    SELECT o.tenant_id, o.id, o.kind, o.detail, o.enabled, o.deleted_at FROM notification_channels o
     WHERE (o.tenant_id, o.id) IN (
       SELECT d.tenant_id, d.channel_id FROM notices d WHERE d.next_retry_at <= v_now AND d.channel_id IS NOT NULL)
       AND (o.taken_at IS NULL OR o.taken_at <= v_now - interval '60 seconds' OR NOT o.enabled
            OR o.deleted_at IS NOT NULL)
     ORDER BY o.tenant_id, o.id LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    SELECT * INTO n FROM notices d WHERE d.tenant_id = c.tenant_id AND d.channel_id = c.id AND d.next_retry_at <= v_now
     ORDER BY d.purpose = 'farewell' DESC, d.next_retry_at, d.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    endpoint_id := c.id;
    problem := CASE
      WHEN c.deleted_at IS NOT NULL AND n.purpose <> 'farewell' THEN 'endpoint_deleted'
      WHEN NOT c.enabled AND c.deleted_at IS NULL THEN 'endpoint_disabled'
      WHEN n.attempts >= n.max_attempts THEN 'outcome_unknown'
      WHEN c.kind = 'email' AND p_mails <= (
        SELECT count(*) FROM notices m WHERE m.tenant_id = c.tenant_id AND m.kind = 'email'
           AND m.tried_at > v_now - interval '1 day') THEN 'mail_quota' END;
    v_numbers := n.numbers; v_more := n.more; v_said := n.said;
    IF problem IS NULL AND n.attempts = 0 AND n.purpose IN ('events', 'change') THEN
      -- What else is due goes into the same message.
      WITH merged AS (
        DELETE FROM notices d WHERE d.tenant_id = c.tenant_id AND d.id IN (
          SELECT e.id FROM notices e
           WHERE e.tenant_id = c.tenant_id AND e.channel_id = c.id AND e.next_retry_at <= v_now AND e.id <> n.id
             AND e.status = 'pending' AND e.attempts = 0 AND e.purpose IN ('events', 'change')
           ORDER BY e.next_retry_at LIMIT 1000 FOR UPDATE SKIP LOCKED)
        RETURNING d.numbers, d.more, d.said)
      SELECT v_numbers || COALESCE((SELECT array_agg(x) FROM merged m, unnest(m.numbers) x), '{}'),
             v_more + COALESCE((SELECT sum(m.more) FROM merged m), 0)::integer,
             v_said || COALESCE((SELECT array_agg(x) FROM merged m, unnest(m.said) x), '{}')
        INTO v_numbers, v_more, v_said;
    END IF;
    RETURN QUERY SELECT * FROM notice_claimed(n.tenant_id, n.id, c.id, c.detail, problem, v_numbers, v_more, v_said,
                                              p_seconds, p_shown);
  END LOOP;
  -- Mails to owners, of which each is told alone.
  FOR n IN
    SELECT * FROM notices d WHERE d.next_retry_at <= v_now AND d.channel_id IS NULL
     ORDER BY d.next_retry_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    problem := CASE WHEN n.attempts >= n.max_attempts THEN 'outcome_unknown' END;
    RETURN QUERY SELECT * FROM notice_claimed(n.tenant_id, n.id, n.user_id, 'words', problem, n.numbers, n.more, n.said,
                                              p_seconds, p_shown);
  END LOOP;
END $$;
