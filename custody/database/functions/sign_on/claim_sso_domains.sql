-- Promises: Claims e-mail domains of any tenant whose record is to be looked at, and puts their next look p_seconds
--   ahead. At most p_of_tenant of one tenant, and of each tenant one before a second of any.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_sso_domains(p_limit integer, p_of_tenant integer, p_seconds integer)
RETURNS TABLE (tenant_id text, domain text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH oldest AS (
    SELECT o.tenant_id, o.domain, o.look_at FROM sso_domains o
     WHERE o.look_at <= (SELECT service_now()) ORDER BY o.look_at LIMIT GREATEST(p_limit, 0)::bigint * 20),
  placed AS (
    SELECT o.*, row_number() OVER (PARTITION BY o.tenant_id ORDER BY o.look_at, o.domain) AS place FROM oldest o),
  due AS (
    SELECT d.tenant_id, d.domain FROM sso_domains d JOIN placed p USING (tenant_id, domain)
     WHERE p.place <= p_of_tenant AND d.look_at = p.look_at
     ORDER BY p.place, p.look_at LIMIT GREATEST(p_limit, 0) FOR UPDATE OF d SKIP LOCKED)
  UPDATE sso_domains d SET look_at = service_now() + make_interval(secs => LEAST(GREATEST(p_seconds, 0), 86400))
    FROM due WHERE d.tenant_id = due.tenant_id AND d.domain = due.domain
  RETURNING d.tenant_id, d.domain
$$;
