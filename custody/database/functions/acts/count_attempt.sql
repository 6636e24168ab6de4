-- Promises: Counts one guess in the window of its subject. 0: it may be made; otherwise the seconds until the next
--   may.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION count_attempt(p_subject text, p_limit integer, p_seconds integer) RETURNS integer
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now(); v_counted boolean; v_left integer;
BEGIN
  INSERT INTO attempts AS a (subject, count, ends_at) VALUES (p_subject, 1, v_now + make_interval(secs => p_seconds))
  ON CONFLICT (subject) DO UPDATE
     SET count = CASE WHEN a.ends_at <= v_now THEN 1 ELSE a.count + 1 END,
         ends_at = CASE WHEN a.ends_at <= v_now THEN v_now + make_interval(secs => p_seconds) ELSE a.ends_at END
   WHERE a.count < p_limit OR a.ends_at <= v_now;
  v_counted := FOUND;
  -- Whoever counts clears away what others left; never many at once, and last, for whoever holds a row waits for none.
  DELETE FROM attempts WHERE subject IN (SELECT subject FROM attempts WHERE ends_at < v_now LIMIT 20
    FOR UPDATE SKIP LOCKED);
  IF v_counted THEN RETURN 0; END IF;
  SELECT GREATEST(1, ceil(extract(epoch FROM a.ends_at - v_now)))::integer INTO v_left FROM attempts a
    WHERE a.subject = p_subject;
  RETURN COALESCE(v_left, 1);
END $$;
