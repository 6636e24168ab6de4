-- Promises: The earliest `mfa_at` (Unix seconds) that a session's token may show. Null: none, until the session
--   shows a factor again.
-- Runs as: caller
-- Execute: definer

CREATE FUNCTION mfa_counts_from(p_shown timestamptz, p_changed timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_changed IS NULL THEN 0
    WHEN p_shown >= p_changed THEN floor(extract(epoch FROM p_changed))::bigint END
$$;
