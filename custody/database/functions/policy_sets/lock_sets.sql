-- Promises: Locks the sums of an agent's policy sets, whose own row the caller has locked, so that no other write comes
--   between the read after it and the write.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION lock_sets(p_tenant text, p_agent text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM set_totals t
    WHERE t.tenant_id = p_tenant
      AND t.set_id IN ('tenant', (SELECT a.policy_set FROM agents a WHERE a.tenant_id = p_tenant AND a.id = p_agent))
    ORDER BY t.set_id, t.asset FOR NO KEY UPDATE;
END $$;
