-- What a receipt states, read at once.

-- ---------------------------------------------------------------- receipts

-- Everything a receipt states, with the audit row of the signature: the one that carries the MAC of the record.
CREATE FUNCTION receipt_read(p_tenant text, p_agent text, p_tx uuid)
RETURNS TABLE (now timestamptz, incarnation uuid, token_epoch integer, evm_address text, solana_address text,
               kind text, status text, to_address text, value numeric, chain_id bigint, caip2 text, nonce bigint,
               reference_id text, replaces_tx_id uuid, order_text text, digest bytea, effects text, policy_results text,
               policy_version bigint, policy_hash bytea, budgets text, tx_hash text, signature text, signed_bytes bytea,
               created_at timestamptz, signed_at timestamptz, approval_id uuid, requested_at timestamptz,
               resolved_at timestamptz, audit_seq bigint, actor_type text, actor_id text, metadata text,
               log_index bigint, checkpoint_size bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY
  SELECT service_now(), a.incarnation, a.token_epoch, a.evm_address, a.solana_address, t.kind, t.status, t.to_address, t.value,
         t.chain_id, t.caip2, t.nonce, t.reference_id, t.replaces_tx_id, t.order_text, t.digest, t.effects, t.policy_results,
         t.policy_version, t.policy_hash, t.budgets, t.tx_hash, t.signature, t.signed_bytes, t.created_at, t.signed_at,
         p.id, p.requested_at, p.resolved_at, u.seq, u.actor_type, u.actor_id, u.metadata, l.log_index,
         (SELECT min(c.size) FROM audit_checkpoints c WHERE c.tenant_id = p_tenant AND c.size > l.log_index)
    FROM agents a
    LEFT JOIN transactions t ON t.tenant_id = p_tenant AND t.agent_id = p_agent AND t.id = p_tx
    LEFT JOIN approvals p ON p.tenant_id = p_tenant AND p.tx_id = t.id
    LEFT JOIN LATERAL (
         SELECT w.seq, w.actor_type, w.actor_id, w.metadata FROM audit w
          WHERE w.tenant_id = p_tenant AND w.resource_id = p_tx::text AND w.resource_type = 'transaction'
            AND w.written_by = 'custody_signer' AND w.metadata LIKE '%"recordMac":%'
          ORDER BY w.seq LIMIT 1) u ON t.signature IS NOT NULL
    LEFT JOIN audit_leaves l ON l.tenant_id = p_tenant AND l.seq = u.seq
   WHERE a.tenant_id = p_tenant AND a.id = p_agent;
END $$;

-- ---------------------------------------------------------------- grants

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION receipt_read TO custody_signer;
