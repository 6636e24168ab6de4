-- Promises: Ends an act: its answer is kept under its idempotency key, and its audit row is written to the log of the
--   tenant that the transaction is in. Raises CU001 where another request took the key meanwhile: nothing of the act
--   stays.
-- Runs as: caller
-- Execute: signer, identity, definer

CREATE FUNCTION finish_act(p_tenant text, p_act act, p_action text, p_resource_type text, p_resource_id text,
                           p_tx uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_act.key_hash IS NOT NULL AND NOT idempotency_put(p_tenant, p_act, p_tx) THEN
    RAISE EXCEPTION 'idempotency key taken' USING ERRCODE = 'CU001';
  END IF;
  PERFORM audit_append(p_act.actor_type, p_act.actor_id, p_action, p_resource_type, p_resource_id, p_act.metadata,
                       p_act.origin);
END $$;
