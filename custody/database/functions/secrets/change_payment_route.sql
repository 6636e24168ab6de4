-- Promises: Changes a payment route if it is still as read. stale: nothing was written, read again.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION change_payment_route(p_tenant text, p_credential credential, p_act act, p_id uuid, p_old_mac bytea,
                                     p_fields text, p_priority integer, p_mac bytea) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  UPDATE payment_routes SET fields = p_fields, priority = p_priority, mac = p_mac
   WHERE tenant_id = p_tenant AND id = p_id AND mac = p_old_mac;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM end_credential_change(p_tenant, p_act, 'payment_route.changed', 'payment_route', p_id);
  RETURN 'done';
END $$;
