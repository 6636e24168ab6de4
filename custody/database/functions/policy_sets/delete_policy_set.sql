-- Promises: Deletes a policy set and its sums. absent: there is none; named: an agent names it.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION delete_policy_set(p_tenant text, p_credential credential, p_act act, p_id text) RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_credential(p_tenant, p_credential);
  -- Who names it at the same time locks it too.
  PERFORM FROM policy_sets WHERE tenant_id = p_tenant AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN RETURN 'absent'; END IF;
  IF EXISTS (SELECT FROM agents WHERE tenant_id = p_tenant AND policy_set = p_id) THEN RETURN 'named'; END IF;
  DELETE FROM policy_sets WHERE tenant_id = p_tenant AND id = p_id;
  PERFORM finish_act(p_tenant, p_act, 'policy_set.deleted', 'policy_set', p_id);
  RETURN 'done';
END $$;
