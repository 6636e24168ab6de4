-- Promises: What deliveries to an endpoint are signed with: a row for each secret in use, first the newest, which has
--   no end. No row: no such endpoint, or it was deleted.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION webhook_secret(p_tenant text, p_endpoint uuid)
RETURNS TABLE (enabled boolean, purpose text, blob bytea, is_newest boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT e.enabled, s.purpose, s.blob, s.ends_at IS NULL FROM webhook_endpoints e
    LEFT JOIN identity_sealed s ON s.tenant_id = e.tenant_id AND s.owner_kind = 'webhook' AND s.owner = e.id::text
      AND (s.ends_at IS NULL OR s.ends_at > service_now())
   WHERE e.tenant_id = p_tenant AND e.id = p_endpoint AND e.deleted_at IS NULL
   ORDER BY s.ends_at DESC NULLS FIRST;
END $$;
