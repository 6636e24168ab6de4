-- Promises: An order of the agent with its approval, if there was one, and which tokens of the agent count. No row: no
--   such agent; nothing but the tokens: no such order of it.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION withdrawal_read(p_tenant text, p_agent text, p_tx uuid)
RETURNS TABLE (now timestamptz, incarnation uuid, token_epoch integer, tx_id uuid, tx_status text, status_detail text,
               kind text, to_address text, value text, chain_id bigint, reference_id text, effects text,
               approval uuid, digest bytea, resolved_at timestamptz, expired boolean, release_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  now := service_now();
  RETURN QUERY
  SELECT withdrawal_read.now, a.incarnation, a.token_epoch, t.id, t.status, t.status_detail, t.kind, t.to_address,
         t.value::text, t.chain_id, t.reference_id, t.effects, p.id, p.digest, p.resolved_at,
         COALESCE(p.expires_at <= withdrawal_read.now, false), p.release_at
    FROM agents a
    LEFT JOIN transactions t ON t.tenant_id = p_tenant AND t.id = p_tx AND t.agent_id = a.id
    LEFT JOIN approvals p ON p.tenant_id = p_tenant AND p.tx_id = t.id
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
