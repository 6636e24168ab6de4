-- Promises: Returns when every order that read the tenant before now is written or given up.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION await_signatures(p_tenant text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- In the order of whoever deletes the tenant, so that the two never wait for each other.
  PERFORM FROM agents WHERE tenant_id = p_tenant ORDER BY id FOR SHARE;
END $$;
