-- Promises: The answer that a living idempotency key stands for, with its request's fingerprint. No row: the key is
--   free.
-- Runs as: caller
-- Execute: api, signer, identity

CREATE FUNCTION idempotency_find(p_tenant text, p_principal text, p_route text, p_key_hash bytea)
RETURNS TABLE (fingerprint bytea, answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_found idempotency;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  SELECT i.* INTO v_found FROM idempotency i
   WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route AND i.key_hash = p_key_hash
     AND i.expires_at > service_now();
  IF NOT FOUND THEN RETURN; END IF;
  -- Only the signer writes such rows, and only it may read orders.
  IF v_found.answer IS NULL AND v_found.tx_id IS NOT NULL THEN
    v_found.answer := (SELECT t.answer FROM transactions t WHERE t.tenant_id = p_tenant AND t.id = v_found.tx_id);
  END IF;
  RETURN QUERY SELECT v_found.fingerprint, v_found.answer;
END $$;
