-- Promises: Everything that a reveal is decided on, in one round trip. No row: no such agent; no fields: no such
--   route.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION reveal_read(p_tenant text, p_agent text, p_id uuid)
RETURNS TABLE (incarnation uuid, token_epoch integer, frozen boolean, secret_id uuid, fields text, mac bytea,
               lost text, version integer, expires_at timestamptz, blob bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT a.incarnation, a.token_epoch, a.frozen_at IS NOT NULL OR t.frozen_at IS NOT NULL, r.secret_id,
    r.fields, r.mac, secret_lost(s.deleted_at, s.expires_at), s.version, s.expires_at, b.blob
    FROM agents a JOIN tenants t ON t.id = p_tenant
    LEFT JOIN credential_routes r ON r.tenant_id = p_tenant AND r.id = p_id
    LEFT JOIN secrets s ON s.tenant_id = p_tenant AND s.id = r.secret_id
    LEFT JOIN sealed b ON b.tenant_id = p_tenant AND b.owner_kind = 'secret' AND b.owner = r.secret_id::text
      AND b.purpose = 'secret'
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
