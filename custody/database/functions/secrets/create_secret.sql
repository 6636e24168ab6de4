-- Promises: Creates a secret with its sealed value. full: the tenant has as many as it may.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION create_secret(p_tenant text, p_credential credential, p_act act, p_secret uuid, p_name text,
                              p_description text, p_expires_at timestamptz, p_key_version integer, p_blob bytea,
                              p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  IF (SELECT count(*) FROM secrets WHERE tenant_id = p_tenant AND deleted_at IS NULL) >= 10000 THEN
    RETURN 'full';
  END IF;
  INSERT INTO secrets (tenant_id, id, name, description, version, expires_at, created_at)
  VALUES (p_tenant, p_secret, p_name, p_description, 1, p_expires_at, p_now);
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  VALUES (p_tenant, 'secret', p_secret::text, 'secret', p_key_version, p_blob);
  PERFORM end_credential_change(p_tenant, p_act, 'secret.created', 'secret', p_secret);
  RETURN 'done';
END $$;
