-- Promises: One account key of an agent, the root it is derived from, and how many accounts there are. Null where there
--   is none yet. No row: no such agent.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION bitcoin_account_read(p_tenant text, p_agent text, p_account text)
RETURNS TABLE (incarnation uuid, token_epoch integer, public_key bytea, chain_code bytea, mac bytea, blob bytea,
               fingerprint text, accounts bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  SELECT a.incarnation, a.token_epoch, b.public_key, b.chain_code, b.mac, s.blob, w.address,
         (SELECT count(*) FROM bitcoin_accounts o WHERE o.tenant_id = p_tenant AND o.agent_id = p_agent)
    FROM agents a
    LEFT JOIN bitcoin_accounts b ON b.tenant_id = p_tenant AND b.agent_id = p_agent AND b.account = p_account
    LEFT JOIN sealed s ON s.tenant_id = p_tenant AND s.owner_kind = 'agent' AND s.owner = p_agent
      AND s.purpose = 'bitcoin'
    LEFT JOIN wallets w ON w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.family = 'bitcoin' AND w.scope = ''
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
