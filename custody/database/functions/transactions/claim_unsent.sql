-- Promises: Claims bytes that wait to be sent, of any tenant, and puts their next try ahead: a second scheduler
--   skips them, a dead one loses nothing.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_unsent(p_limit integer, p_first_seconds integer, p_longest_seconds integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, chain_id bigint, nonce bigint, signed_bytes bytea, tx_hash text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- The claim pushes the next try into the future, so a second scheduler skips the row and a dead one loses nothing.
  WITH due AS (
    SELECT t.tenant_id, t.id FROM transactions t
     WHERE t.status = 'signed' AND t.broadcast AND t.resend_at <= service_now()
     ORDER BY t.resend_at LIMIT p_limit FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE transactions t
       SET resends = t.resends + 1, look_at = COALESCE(t.look_at, service_now()),
           resend_at = service_now() + make_interval(
             secs => LEAST(p_longest_seconds, p_first_seconds * power(2, LEAST(t.resends, 10))))
      FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
    RETURNING t.tenant_id, t.id, t.kind, t.chain_id, t.nonce, t.signed_bytes, t.tx_hash)
  SELECT * FROM claimed c WHERE NOT EXISTS (
    SELECT FROM transactions r WHERE r.tenant_id = c.tenant_id AND r.replaces_tx_id = c.id AND r.signature IS NOT NULL)
$$;
