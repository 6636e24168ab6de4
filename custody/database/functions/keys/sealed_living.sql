-- Promises: The condition for rows of a table that anything is still judged by; nobody looks at the MACs of the
--   others again.
-- Runs as: caller
-- Execute: definer

CREATE FUNCTION sealed_living(p_table text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_table = 'approvals' THEN $q$status = 'pending'$q$
    WHEN p_table = 'sessions' THEN 'revoked_at IS NULL AND expires_at > service_now()'
    WHEN p_table IN ('sign_in_codes', 'enrolments', 'device_codes') THEN 'expires_at > service_now()'
    WHEN p_table = 'recovery_codes' THEN 'used_at IS NULL'
    ELSE 'true' END
$$;
