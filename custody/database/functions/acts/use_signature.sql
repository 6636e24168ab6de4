-- Promises: Records a request's signature. False: it was used before, and this is not its own request again.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION use_signature(p_tenant text, p_key_name text, p_signature_hash bytea, p_idempotency_hash bytea,
                              p_expires_at timestamptz,
    p_principal text, p_route text, p_key_hash bytea) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_may boolean;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  INSERT INTO used_signatures (tenant_id, key_name, signature_hash, idempotency_hash, expires_at)
  VALUES (p_tenant, p_key_name, p_signature_hash, p_idempotency_hash, COALESCE(p_expires_at, 'infinity'::timestamptz))
  ON CONFLICT (tenant_id, key_name, signature_hash) DO NOTHING;
  v_may := FOUND;
  IF NOT v_may THEN
    -- What was done is only repeated, by its kept answer, which must not end before it is read. What was refused may be
    -- tried again at once; later it would be an order that nobody expects any more.
    SELECT u.idempotency_hash = p_idempotency_hash AND (u.used_at > service_now() - interval '10 seconds' OR EXISTS (
             SELECT FROM idempotency i WHERE i.tenant_id = p_tenant AND i.principal = p_principal AND i.route = p_route
                AND i.key_hash = p_key_hash AND i.expires_at > service_now() + interval '1 minute'))
      INTO v_may FROM used_signatures u
     WHERE u.tenant_id = p_tenant AND u.key_name = p_key_name AND u.signature_hash = p_signature_hash;
  END IF;
  PERFORM clear_used_signatures(p_tenant);
  RETURN COALESCE(v_may, false);
END $$;
