-- Promises: Records how a job ended, for people and /ready. Raises beyond 64 jobs.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION job_ended(p_name text, p_good boolean, p_items bigint, p_milliseconds bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  IF (SELECT count(*) FROM jobs) >= 64 AND NOT EXISTS (SELECT FROM jobs WHERE name = p_name) THEN
    RAISE EXCEPTION 'at most 64 jobs' USING ERRCODE = 'program_limit_exceeded';
  END IF;
  INSERT INTO jobs AS j (name, last_success_at, last_failure_at, last_items, last_milliseconds)
  VALUES (p_name, CASE WHEN p_good THEN service_now() END, CASE WHEN NOT p_good THEN service_now() END, p_items,
    p_milliseconds)
  ON CONFLICT (name) DO UPDATE SET last_success_at = COALESCE(excluded.last_success_at, j.last_success_at),
      last_failure_at = COALESCE(excluded.last_failure_at, j.last_failure_at), last_items = excluded.last_items,
      last_milliseconds = excluded.last_milliseconds;
END $$;
