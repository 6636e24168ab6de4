-- Promises: Everything that a receipt states, with the audit row of the signature: the one that carries the MAC of
--   the record.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION receipt_read(p_tenant text, p_agent text, p_tx uuid)
RETURNS TABLE (now timestamptz, incarnation uuid, token_epoch integer, wallet text,
               kind text, status text, to_address text, value numeric, chain_id bigint, caip2 text, nonce bigint,
               reference_id text, replaces_tx_id uuid, order_text text, digest bytea, effects text, policy_results text,
               policy_version bigint, policy_hash bytea, budgets text, tx_hash text, signature text, signed_bytes bytea,
               created_at timestamptz, signed_at timestamptz, approval_id uuid, requested_at timestamptz,
               resolved_at timestamptz, audit_seq bigint, actor_type text, actor_id text, metadata text,
               log_index bigint, checkpoint_size bigint, votes_text text, authorization_text text,
               account text, account_key bytea, account_chain_code bytea, account_mac bytea)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  WITH one AS MATERIALIZED (SELECT * FROM transactions WHERE tenant_id = p_tenant AND id = p_tx)
  SELECT service_now(), a.incarnation, a.token_epoch, w.address, t.kind, t.status, t.to_address, t.value,
         t.chain_id, t.caip2, t.nonce, t.reference_id, t.replaces_tx_id, t.order_text, t.digest, t.effects,
         t.policy_results,
         t.policy_version, t.policy_hash, t.budgets, t.tx_hash, t.signature, t.signed_bytes, t.created_at, t.signed_at,
         p.id, p.requested_at, p.resolved_at, u.seq, u.actor_type, u.actor_id, u.metadata, l.log_index,
         (SELECT min(c.size) FROM audit_checkpoints c WHERE c.tenant_id = p_tenant AND c.size > l.log_index),
         t.votes_text, t.authorization_text, b.account, b.public_key, b.chain_code, b.mac
    FROM agents a
    LEFT JOIN one t ON t.agent_id = p_agent
    LEFT JOIN wallets w ON w.tenant_id = p_tenant AND w.agent_id = p_agent AND w.family = t.family AND w.scope = ''
    LEFT JOIN bitcoin_accounts b ON t.kind = 'bitcoin' AND b.tenant_id = p_tenant AND b.agent_id = p_agent
      -- Of an order that was refused the text may not have been kept; CASE, for conditions have no order.
      AND b.account = CASE WHEN t.kind = 'bitcoin' AND t.order_text <> ''
          THEN substring(t.order_text::json ->> 'walletScope' FROM '^[^:]+:[^:]+:[^:]+:[0-9]+') END
    LEFT JOIN approvals p ON p.tenant_id = p_tenant AND p.tx_id = t.id
    LEFT JOIN LATERAL (
         SELECT o.seq, o.actor_type, o.actor_id, o.metadata FROM audit o
          WHERE o.tenant_id = p_tenant AND o.resource_id = p_tx::text AND o.resource_type = 'transaction'
            AND o.written_by = 'custody_signer' AND o.metadata LIKE '%"recordMac":%'
          ORDER BY o.seq LIMIT 1) u ON t.signature IS NOT NULL
    LEFT JOIN audit_leaves l ON l.tenant_id = p_tenant AND l.seq = u.seq
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;
