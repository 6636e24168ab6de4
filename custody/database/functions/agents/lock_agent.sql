-- Promises: Locks the agent's row in a statement of its own, so that the read after it sees what it waited for.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION lock_agent(p_tenant text, p_agent text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM FROM agents WHERE tenant_id = p_tenant AND id = p_agent FOR UPDATE;
END $$;
