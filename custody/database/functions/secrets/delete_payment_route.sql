-- Promises: Deletes a payment route. absent: no such route.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION delete_payment_route(p_tenant text, p_credential credential, p_act act, p_id uuid) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  DELETE FROM payment_routes WHERE tenant_id = p_tenant AND id = p_id;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  PERFORM end_credential_change(p_tenant, p_act, 'payment_route.deleted', 'payment_route', p_id);
  RETURN 'done';
END $$;
