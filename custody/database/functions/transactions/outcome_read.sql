-- Promises: One signed order as events tell of it. What is read never changes once it is signed.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION outcome_read(p_tenant text, p_tx uuid)
RETURNS TABLE (tx_id uuid, kind text, to_address text, value text, chain_id bigint, reference_id text, effects text,
               tx_hash text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT t.id, t.kind, t.to_address, t.value::text, t.chain_id, t.reference_id, t.effects, t.tx_hash
    FROM transactions t WHERE t.tenant_id = p_tenant AND t.id = p_tx AND t.signature IS NOT NULL;
END $$;
