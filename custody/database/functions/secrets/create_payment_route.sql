-- Promises: Creates a payment route. full: the tenant has as many routes of both kinds as it may.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION create_payment_route(p_tenant text, p_credential credential, p_act act, p_id uuid, p_fields text,
                                     p_priority integer, p_mac bytea, p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  IF (SELECT count(*) FROM credential_routes WHERE tenant_id = p_tenant)
     + (SELECT count(*) FROM payment_routes WHERE tenant_id = p_tenant) >= 10000 THEN
    RETURN 'full';
  END IF;
  INSERT INTO payment_routes (tenant_id, id, fields, priority, mac, created_at)
  VALUES (p_tenant, p_id, p_fields, p_priority, p_mac, p_now);
  PERFORM end_credential_change(p_tenant, p_act, 'payment_route.created', 'payment_route', p_id);
  RETURN 'done';
END $$;
