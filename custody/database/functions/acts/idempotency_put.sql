-- Promises: Stores the answer to an act under its idempotency key: true if the key was free or expired, or there is
--   none; false if another request was first. p_tx: the transaction that has the answer instead.
-- Runs as: caller
-- Execute: signer, identity, definer

CREATE FUNCTION idempotency_put(p_tenant text, p_act act, p_tx uuid DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF p_act.key_hash IS NULL THEN RETURN true; END IF;
  -- An expired row is taken over; a living one means that another request was first.
  INSERT INTO idempotency AS i (tenant_id, principal, route, key_hash, fingerprint, answer, tx_id, expires_at)
  VALUES (p_tenant, p_act.principal, p_act.route, p_act.key_hash, p_act.fingerprint, p_act.answer, p_tx,
          service_now() + interval '24 hours')
  ON CONFLICT (tenant_id, principal, route, key_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, answer = excluded.answer, tx_id = excluded.tx_id,
         expires_at = excluded.expires_at
   WHERE i.expires_at <= service_now();
  RETURN FOUND;
END $$;
