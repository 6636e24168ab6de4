-- Promises: Deletes a few signatures that no request can use again, and skips rows that others hold.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION clear_used_signatures(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- A few at a time, so that no request waits long for what others left. A minute later than it must, for clocks
  -- differ.
  DELETE FROM used_signatures WHERE (tenant_id, key_name, signature_hash) IN (
    SELECT tenant_id, key_name, signature_hash FROM used_signatures
     WHERE tenant_id = p_tenant AND expires_at < service_now() - interval '1 minute' LIMIT 10 FOR UPDATE SKIP LOCKED);
  -- Nobody signs with a key that ended; a day later no request that it signed is under way any more.
  DELETE FROM used_signatures WHERE (tenant_id, key_name, signature_hash) IN (
    SELECT p_tenant, u.key_name, u.signature_hash
      FROM (SELECT id::text FROM signing_keys
             WHERE tenant_id = p_tenant AND LEAST(revoked_at, retires_at) < service_now() - interval '24 hours'
            UNION ALL SELECT encode(secret_hash, 'hex') FROM app_secrets
             WHERE tenant_id = p_tenant AND LEAST(revoked_at, retires_at) < service_now() - interval '24 hours'
            UNION ALL SELECT encode(key_hash, 'hex') FROM platform_keys
             WHERE p_tenant = 'platform' AND revoked_at < service_now() - interval '24 hours') AS ended (name)
     CROSS JOIN LATERAL (SELECT key_name, signature_hash FROM used_signatures
                          WHERE tenant_id = p_tenant AND key_name = ended.name LIMIT 10 FOR UPDATE SKIP LOCKED) AS u
     LIMIT 10);
END $$;
