-- Promises: Makes a policy set at version 1, or replaces its rules if the version before is the expected one. stale:
--   nothing was written, read again; full: the tenant has as many as it may.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION put_policy_set(p_tenant text, p_credential credential, p_act act, p_set policy_set, p_now timestamptz,
                               p_most integer, p_events text)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_credential(p_tenant, p_credential);
  IF p_set.version = 1 THEN
    -- The lock: of two that are made at once the second counts the first.
    PERFORM FROM tenants WHERE id = p_tenant FOR NO KEY UPDATE;
    IF (SELECT count(*) FROM policy_sets WHERE tenant_id = p_tenant) >= p_most THEN RETURN 'full'; END IF;
    INSERT INTO policy_sets (tenant_id, id, name, version, rules, mac, created_at, updated_at)
    VALUES (p_tenant, p_set.id, p_set.name, 1, p_set.rules, p_set.mac, p_now, p_now)
    ON CONFLICT (tenant_id, id) DO NOTHING;
  ELSE
    UPDATE policy_sets
       SET name = p_set.name, version = p_set.version, rules = p_set.rules, mac = p_set.mac, updated_at = p_now
     WHERE tenant_id = p_tenant AND id = p_set.id AND version = p_set.version - 1;
  END IF;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM finish_act(p_tenant, p_act,
                     CASE p_set.version WHEN 1 THEN 'policy_set.created' ELSE 'policy_set.replaced' END,
                     'policy_set', p_set.id);
  PERFORM emit(NULL, p_events);
  RETURN 'done';
END $$;
