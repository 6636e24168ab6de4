-- Promises: Creates those of the agents that do not exist, each with its wallets, rules and audit row, and returns only
--   those.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION create_agents(p_tenant text, p_credential credential, p_act act, p_agents new_agent[],
                              p_wallets new_wallet[], p_key_version integer, p_rules rule[])
RETURNS TABLE (id text, created_at timestamptz)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now(); v_created text[]; v_bytes bigint := rules_bytes(p_rules);
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  PERFORM demand_credential(p_tenant, p_credential);
  WITH made AS (
    INSERT INTO agents AS a (tenant_id, id, name, platform_id, incarnation, created_at,
                             policy_bytes, day, day_bytes, policy_set)
    -- 3072: what an agent takes without any rule (AGENT_BYTES in signer/quotas.py).
    SELECT p_tenant, n.id, n.name, n.platform_id, n.incarnation, v_now, v_bytes, utc_day(), v_bytes + 3072,
           set_named_in(p_rules)
      FROM unnest(p_agents) AS n
     ORDER BY n.id
    ON CONFLICT (tenant_id, id) DO NOTHING RETURNING a.id)
  SELECT array_agg(made.id) INTO v_created FROM made;
  INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob)
  SELECT p_tenant, 'agent', w.agent, w.family, p_key_version, w.blob
    FROM unnest(p_wallets) AS w WHERE w.agent = ANY (v_created);
  INSERT INTO wallets (tenant_id, agent_id, family, address, created_at)
  SELECT p_tenant, w.agent, w.family, w.address, v_now FROM unnest(p_wallets) AS w WHERE w.agent = ANY (v_created);
  INSERT INTO policy_heads (tenant_id, agent_id, version, count, mac)
  SELECT p_tenant, n.id, 1, cardinality(p_rules), n.head_mac FROM unnest(p_agents) AS n WHERE n.id = ANY (v_created);
  INSERT INTO policy_rules (tenant_id, agent_id, position, id, type, enabled, config)
  SELECT p_tenant, a, r.position, r.id, r.type, r.enabled, r.config
    FROM unnest(v_created) AS a, unnest(p_rules) WITH ORDINALITY AS r (id, type, enabled, config, position);
  PERFORM audit_append(p_act.actor_type, p_act.actor_id, 'agent.created', 'agent', c, p_act.metadata, p_act.origin)
     FROM unnest(v_created) AS c;
  RETURN QUERY SELECT c, v_now FROM unnest(v_created) AS c;
END $$;
