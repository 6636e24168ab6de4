-- Promises: Claims transactions of one chain whose state a node is to be asked for, and puts their next look ahead.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_following(p_chain bigint, p_limit integer, p_first_seconds integer, p_longest_seconds integer,
                                p_looks_per_age integer, p_unsent_seconds integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, status text, address text, nonce bigint, tx_hash text,
               signed_bytes bytea, age_seconds double precision, slot text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- One chain at a time: a chain whose node is away holds up no other. The older a transaction is,
  -- the later the next look. What we never send ourselves, a payment, gets its last one at a certain age.
  WITH due AS (
    SELECT t.tenant_id, t.id FROM transactions t
     WHERE t.chain_id = p_chain AND t.status IN ('signed', 'broadcast') AND t.look_at <= service_now()
     ORDER BY t.look_at LIMIT p_limit FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE transactions t
       SET look_at = CASE WHEN t.broadcast OR t.signed_at > service_now() - make_interval(secs => p_unsent_seconds)
             THEN service_now() + LEAST(
               make_interval(secs => p_longest_seconds),
               GREATEST(make_interval(secs => p_first_seconds), (service_now() - t.signed_at) / p_looks_per_age)) END
      FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
    RETURNING t.*)
  SELECT c.tenant_id, c.id, c.kind, c.status, w.address,
         c.nonce, c.tx_hash, c.signed_bytes, extract(epoch FROM service_now() - c.signed_at)::double precision,
         CASE WHEN c.nonce IS NOT NULL THEN slot_of(c.tenant_id, w.address, c.chain_id, c.nonce, c.id) END
    FROM claimed c
    JOIN wallets w ON w.tenant_id = c.tenant_id AND w.agent_id = c.agent_id AND w.family = c.family AND w.scope = ''
$$;
