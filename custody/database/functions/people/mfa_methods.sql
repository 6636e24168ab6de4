-- Promises: The kinds of second factors that one person has.
-- Runs as: definer
-- Execute: api, signer, identity

CREATE FUNCTION mfa_methods(p_user uuid) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT COALESCE(array_agg(x.kind ORDER BY x.kind), '{}') FROM (
    SELECT f.kind FROM factors f WHERE f.user_id = p_user
    UNION SELECT 'passkey' FROM passkeys p WHERE p.user_id = p_user
    UNION SELECT 'recovery' FROM recovery_codes r WHERE r.user_id = p_user AND r.used_at IS NULL) AS x (kind)
$$;
