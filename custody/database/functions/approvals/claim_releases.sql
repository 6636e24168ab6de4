-- Promises: Approvals of any tenant whose time to be signed by themselves is over, each with its order and wallet;
--   their next look is put ahead, so what a rule still holds back is asked for ever more seldom. It decides nothing.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION claim_releases(p_limit integer)
RETURNS TABLE (tenant_id text, id uuid, kind text, order_text text, address text)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH due AS (
    SELECT p.tenant_id, p.id FROM approvals p
     WHERE p.status = 'pending' AND p.release_look_at <= (SELECT service_now())
     ORDER BY p.release_look_at LIMIT p_limit FOR UPDATE SKIP LOCKED),
  claimed AS (
    UPDATE approvals p
       SET release_look_at = service_now() + GREATEST(interval '5 seconds', LEAST(interval '10 minutes',
                                                      service_now() - p.release_at))
      FROM due WHERE p.tenant_id = due.tenant_id AND p.id = due.id RETURNING p.tenant_id, p.id, p.tx_id)
  SELECT c.tenant_id, c.id, t.kind, t.order_text, w.address
    FROM claimed c JOIN transactions t ON t.tenant_id = c.tenant_id AND t.id = c.tx_id
    LEFT JOIN wallets w ON w.tenant_id = c.tenant_id AND w.agent_id = t.agent_id AND w.family = t.family
      AND w.scope = ''
$$;
