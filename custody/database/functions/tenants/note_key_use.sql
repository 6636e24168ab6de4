-- Promises: Notes that an API key was used now. It waits for nobody: a row that somebody holds is left as it is.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION note_key_use(p_tenant text, p_hash bytea) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- A figure for people: if the machine dies, the last second of it may be lost.
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE tenant_keys SET last_used_at = service_now() WHERE (tenant_id, key_hash) IN (
    SELECT tenant_id, key_hash FROM tenant_keys WHERE tenant_id = p_tenant AND key_hash = p_hash
       AND (last_used_at IS NULL OR last_used_at < service_now() - interval '30 seconds')
       FOR NO KEY UPDATE SKIP LOCKED);
END $$;
