-- Promises: One approval with the order that waits for it, by its own id or by the order's.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION approval_read(p_tenant text, p_approval uuid, p_tx uuid, p_agent text)
RETURNS TABLE (id uuid, tx_id uuid, agent_id text, status text, digest bytea, expired boolean, kind text,
               order_text text,
               to_address text, value text, chain_id bigint, requested_at timestamptz, mac bytea, incarnation uuid,
               reference_id text, effects text, expires_at timestamptz, authorization_text text,
               waits_since timestamptz, release_at timestamptz, releases boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT p.id, p.tx_id, p.agent_id, p.status, p.digest,
         p.expires_at IS NOT NULL AND p.expires_at <= service_now(), t.kind, t.order_text, t.to_address, t.value::text,
         t.chain_id, p.requested_at, p.mac, t.incarnation, t.reference_id, t.effects, p.expires_at,
         t.authorization_text, p.waits_since, p.release_at, p.release_look_at IS NOT NULL
    FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id
   WHERE p.tenant_id = p_tenant AND (p.id = p_approval OR (p_approval IS NULL AND p.tx_id = p_tx))
     AND (p_agent IS NULL OR p.agent_id = p_agent);
END $$;
