-- Promises: Replaces all rules of an agent and its head, if the version before is the expected one. stale: nothing was
--   written, read again.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION replace_policies(p_tenant text, p_credential credential, p_act act, p_agent text, p_incarnation uuid,
                                 p_epoch integer, p_version bigint, p_mac bytea, p_rules rule[],
                                 p_events text DEFAULT '[]') RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_today date := utc_day(); v_bytes bigint := rules_bytes(p_rules);
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE agents SET policy_version = p_version, ledger_version = ledger_version + 1, policy_bytes = v_bytes,
         policy_set = set_named_in(p_rules),
         day_orders = CASE WHEN day = v_today THEN day_orders ELSE 0 END,
         day_bytes = CASE WHEN day = v_today THEN day_bytes ELSE 0 END + v_bytes
                   + CASE WHEN p_act.key_hash IS NULL THEN 0 ELSE COALESCE(octet_length(p_act.answer), 0) END,
         day = v_today
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = p_incarnation AND policy_version = p_version - 1
     AND (p_epoch IS NULL OR token_epoch = p_epoch);
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  PERFORM demand_credential(p_tenant, p_credential);
  DELETE FROM policy_rules WHERE tenant_id = p_tenant AND agent_id = p_agent;
  INSERT INTO policy_rules (tenant_id, agent_id, position, id, type, enabled, config)
  SELECT p_tenant, p_agent, r.position, r.id, r.type, r.enabled, r.config
    FROM unnest(p_rules) WITH ORDINALITY AS r (id, type, enabled, config, position);
  INSERT INTO policy_heads (tenant_id, agent_id, version, count, mac)
  VALUES (p_tenant, p_agent, p_version, cardinality(p_rules), p_mac)
  ON CONFLICT (tenant_id, agent_id)
  DO UPDATE SET version = excluded.version, count = excluded.count, mac = excluded.mac;
  PERFORM finish_act(p_tenant, p_act, 'policy.replaced', 'agent', p_agent);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;
