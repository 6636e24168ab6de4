-- Promises: Replaces a secret's value. p_fits_header: it was checked against a header route. stale: nothing was
--   written, read again.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION rotate_secret(p_tenant text, p_credential credential, p_act act, p_secret uuid, p_version integer,
                              p_key_version integer, p_blob bytea, p_fits_header boolean, p_now timestamptz,
                              p_action text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_credential_change(p_tenant, p_credential);
  -- A header route that came after the value was looked at: look again.
  IF NOT p_fits_header AND EXISTS (
       SELECT FROM credential_routes r
        WHERE r.tenant_id = p_tenant AND r.secret_id = p_secret AND is_header_route(r.fields)) THEN
    RETURN 'stale';
  END IF;
  UPDATE secrets SET version = p_version, rotated_at = p_now, refresh_lease = NULL, refresh_until = NULL
   WHERE tenant_id = p_tenant AND id = p_secret AND version = p_version - 1 AND deleted_at IS NULL;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  -- What a provider gave for the value before is for that value alone.
  DELETE FROM sealed
   WHERE tenant_id = p_tenant AND owner_kind = 'secret' AND owner = p_secret::text AND purpose = 'refresh-token';
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  VALUES (p_tenant, 'secret', p_secret::text, 'secret', p_key_version, p_blob)
  ON CONFLICT (tenant_id, owner_kind, owner, purpose)
  DO UPDATE SET key_version = excluded.key_version, blob = excluded.blob;
  PERFORM end_credential_change(p_tenant, p_act, p_action, 'secret', p_secret);
  RETURN 'done';
END $$;
