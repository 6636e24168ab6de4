-- Promises: Deletes an agent, revokes its tokens, or records that one was minted. absent: no such agent.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION change_agent(p_tenant text, p_credential credential, p_act act, p_agent text, p_change text)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_there boolean := true;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  IF p_change NOT IN ('delete', 'revoke_tokens', 'mint_token') THEN
    RAISE EXCEPTION 'unknown change %', p_change;
  END IF;
  IF p_change <> 'mint_token' THEN
    -- Waited for first: the credential must hold when the change is made, not when it began to wait.
    PERFORM FROM agents WHERE tenant_id = p_tenant AND id = p_agent FOR UPDATE;
    v_there := FOUND;
  END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  IF NOT v_there THEN RETURN 'absent'; END IF;
  IF p_change = 'delete' THEN
    -- Another agent may get this id: votes were on this one's.
    DELETE FROM approval_votes WHERE tenant_id = p_tenant AND kind = 'policies' AND subject = p_agent;
    DELETE FROM agents WHERE tenant_id = p_tenant AND id = p_agent;
  ELSIF p_change = 'revoke_tokens' THEN
    UPDATE agents SET token_epoch = token_epoch + 1, ledger_version = ledger_version + 1
     WHERE tenant_id = p_tenant AND id = p_agent;
  END IF;
  PERFORM finish_act(p_tenant, p_act,
                     CASE p_change WHEN 'delete' THEN 'agent.deleted' WHEN 'mint_token' THEN 'agent.token_minted'
                                   ELSE 'agent.tokens_revoked' END, 'agent', p_agent);
  RETURN 'done';
END $$;
