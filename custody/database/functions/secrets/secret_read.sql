-- Promises: A secret that was not deleted, with one route, if there is any, that puts it into a header.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION secret_read(p_tenant text, p_secret uuid)
RETURNS TABLE (name text, version integer, expires_at timestamptz, blob bytea,
               header_route uuid, header_fields text, header_mac bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT s.name, s.version, s.expires_at, b.blob, h.id, h.fields, h.mac
    FROM secrets s
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = p_secret::text
      AND b.purpose = 'secret'
    LEFT JOIN LATERAL (SELECT r.id, r.fields, r.mac FROM credential_routes r
                        WHERE r.tenant_id = p_tenant AND r.secret_id = p_secret AND is_header_route(r.fields)
                        LIMIT 1) h ON true
   WHERE s.tenant_id = p_tenant AND s.id = p_secret AND s.deleted_at IS NULL;
END $$;
