-- Promises: One signed order as events tell of it. What is read never changes once it is signed.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION outcome_read(p_tenant text, p_tx uuid)
RETURNS TABLE (tx_id uuid, kind text, to_address text, value text, chain_id bigint, reference_id text, effects text,
               tx_hash text, agent_id text, breakers boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT t.id, t.kind, t.to_address, t.value::text, t.chain_id, t.reference_id, t.effects, t.tx_hash,
         t.agent_id,
         EXISTS (SELECT FROM policy_rules r WHERE r.tenant_id = p_tenant AND r.agent_id = t.agent_id
                    AND r.type LIKE 'circuit-breaker%')
         OR EXISTS (SELECT FROM policy_sets s WHERE s.tenant_id = p_tenant AND s.rules LIKE '%circuit-breaker%')
    FROM transactions t WHERE t.tenant_id = p_tenant AND t.id = p_tx AND t.signature IS NOT NULL;
END $$;
