-- Promises: One route with the state and sealed value of its secret, if it has one.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION credential_route_read(p_tenant text, p_id uuid)
RETURNS TABLE (secret_id uuid, fields text, mac bytea, created_at timestamptz, deleted boolean, version integer,
               expires_at timestamptz, blob bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.secret_id, r.fields, r.mac, r.created_at, s.deleted_at IS NOT NULL, s.version, s.expires_at,
    b.blob
    FROM credential_routes r LEFT JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = r.secret_id::text
      AND b.purpose = 'secret'
   WHERE r.tenant_id = p_tenant AND r.id = p_id;
END $$;
