-- Promises: People of all tenants, newest first, behind a place: those who match, at most p_limit, among the next
--   p_looked; one row with nothing of a person where nobody does. looked_at, looked_id: how far was looked; null at the
--   end. With p_text the name or an address has it, in any case; with p_active the person is active, or is deactivated.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION users_page(p_text text, p_active boolean, p_at timestamptz, p_id uuid, p_limit integer,
                           p_looked integer)
RETURNS TABLE (person platform_person, looked_at timestamptz, looked_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH looked AS MATERIALIZED (
    SELECT u.id, u.created_at, u.name, u.profile_email, u.deactivated_at FROM users u
     WHERE p_at IS NULL OR u.created_at <= p_at AND (u.created_at < p_at OR u.id > p_id)
     ORDER BY u.created_at DESC, u.id LIMIT p_looked),
  found AS MATERIALIZED (
    SELECT l.id, l.created_at FROM looked l
     WHERE (p_active IS NULL OR (l.deactivated_at IS NULL) = p_active)
       AND (p_text IS NULL OR position(lower(p_text) IN lower(l.name)) > 0
         OR position(lower(p_text) IN lower(l.profile_email)) > 0
         OR EXISTS (SELECT FROM identities i WHERE i.user_id = l.id AND i.kind = 'email'
                       AND position(lower(p_text) IN i.subject) > 0))
     ORDER BY l.created_at DESC, l.id LIMIT p_limit),
  ended AS (
    -- A page that is full ends at its last person; else everything that was looked at is behind it.
    SELECT e.id, e.created_at FROM (
      SELECT f.id, f.created_at FROM found f WHERE (SELECT count(*) FROM found) = p_limit
      UNION ALL
      SELECT l.id, l.created_at FROM looked l
       WHERE (SELECT count(*) FROM found) < p_limit AND (SELECT count(*) FROM looked) = p_looked) e
     ORDER BY e.created_at, e.id DESC LIMIT 1)
  SELECT p, ended.created_at, ended.id
    FROM (SELECT 1) one
    LEFT JOIN ended ON true
    LEFT JOIN (SELECT f.id, f.created_at FROM found f) f ON true
    LEFT JOIN LATERAL platform_user(f.id) p ON true
   ORDER BY f.created_at DESC, f.id;
END $$;
