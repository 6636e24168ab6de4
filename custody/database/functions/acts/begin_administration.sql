-- Promises: Locks the tenant's row and checks the credential, so that changes of one tenant's administration go one
--   after the other.
-- Runs as: caller
-- Execute: signer, identity

CREATE FUNCTION begin_administration(p_tenant text, p_credential credential) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The lock: changes of one tenant's administration go one after the other, so what is counted or compared after it
  -- stays so. Signing takes no lock on this row, and goes on.
  PERFORM FROM tenants WHERE id = p_tenant FOR NO KEY UPDATE;
  PERFORM demand_credential(p_tenant, p_credential);
END $$;
