-- Promises: One person's second factors, without their seeds.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION user_factors(p_user uuid)
RETURNS TABLE (kind text, subject text, confirmed_at timestamptz, recovery_left bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT f.kind, f.subject, f.confirmed_at, NULL::bigint FROM factors f WHERE f.user_id = p_user
  UNION ALL
  SELECT 'recovery', NULL, NULL, count(*) FROM recovery_codes r WHERE r.user_id = p_user AND r.used_at IS NULL
    HAVING count(*) > 0
$$;
