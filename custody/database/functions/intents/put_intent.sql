-- Promises: Keeps a new intent, pending.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION put_intent(p_tenant text, p intent_row) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO intents (tenant_id, id, agent_id, incarnation, type, resource_type, resource_id, reference_id, payload,
                       digest, status, created_by, created_by_name, tx_ids, results, answer, expires_at, created_at,
                       updated_at, mac)
  VALUES (p_tenant, p.id, p.agent_id, p.incarnation, p.type, p.resource_type, p.resource_id, p.reference_id, p.payload,
          p.digest, 'pending', p.created_by, p.created_by_name, p.tx_ids, p.results, p.answer, p.expires_at,
          p.created_at, p.created_at, p.mac)
$$;
