-- Promises: Deletes a secret's value and marks the secret deleted. absent: no such secret.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION delete_secret(p_tenant text, p_credential credential, p_act act, p_secret uuid, p_now timestamptz)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  UPDATE secrets SET deleted_at = p_now WHERE tenant_id = p_tenant AND id = p_secret AND deleted_at IS NULL;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  DELETE FROM sealed WHERE tenant_id = p_tenant AND owner_kind = 'secret' AND owner = p_secret::text;
  PERFORM end_credential_change(p_tenant, p_act, 'secret.deleted', 'secret', p_secret);
  RETURN 'done';
END $$;
