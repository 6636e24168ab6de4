-- Promises: What session_proof tells of a session, without the MACs, which are not the api's to see.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION session_standing(p_session uuid, p_user uuid, p_tenant text, p_issued_at bigint)
RETURNS TABLE (role text, methods text[], mfa_counts_from bigint, item_counts_from bigint, judging text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT p.role, p.methods, p.mfa_counts_from, p.item_counts_from, p.judging
    FROM session_proof(p_session, p_user, p_tenant, p_issued_at) p
$$;
