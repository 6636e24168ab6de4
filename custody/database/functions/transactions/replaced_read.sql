-- Promises: The transaction to be replaced, the earlier answer to this very replacement, and which tokens of the
--   agent count.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION replaced_read(p_tenant text, p_agent text, p_tx uuid, p_new uuid)
RETURNS TABLE (incarnation uuid, token_epoch integer, kind text, status text, broadcast boolean, reference_id text,
               signed_bytes bytea, answer bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  WITH old AS MATERIALIZED (SELECT * FROM transactions WHERE tenant_id = p_tenant AND id = p_tx),
       new AS MATERIALIZED (SELECT * FROM transactions WHERE tenant_id = p_tenant AND id = p_new)
  SELECT a.incarnation, a.token_epoch, t.kind, t.status, t.broadcast, t.reference_id, t.signed_bytes,
         (SELECT n.answer FROM new n WHERE n.agent_id = p_agent)
    FROM agents a LEFT JOIN old t ON t.agent_id = a.id
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
