-- Promises: Keeps what the operator said of the quorums of one version of an agent's rules, in place of what was said.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION put_break(p_tenant text, p_agent text, p_version bigint, p_effective timestamptz, p_mac bytea)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO quorum_breaks (tenant_id, agent_id, policy_version, effective_at, mac, created_at)
  VALUES (p_tenant, p_agent, p_version, p_effective, p_mac, service_now())
  ON CONFLICT (tenant_id, agent_id) DO UPDATE SET policy_version = excluded.policy_version,
    effective_at = excluded.effective_at, mac = excluded.mac;
END $$;
