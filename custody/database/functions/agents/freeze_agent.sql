-- Promises: Freezes or, without a time, unfreezes an agent. A frozen one keeps its first time and reason. No row:
--   no such agent.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION freeze_agent(p_tenant text, p_agent text, p_credential credential, p_frozen_at timestamptz,
                             p_reason text)
RETURNS TABLE (changed boolean, frozen_at timestamptz, frozen_reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  -- The agent's row is what every signature locks first: those under way commit before this does, and whoever comes
  -- after it finds that its guard no longer holds.
  UPDATE agents a SET frozen_at = p_frozen_at, frozen_reason = p_reason
   WHERE a.tenant_id = p_tenant AND a.id = p_agent AND (a.frozen_at IS NULL) <> (p_frozen_at IS NULL);
  changed := FOUND;
  -- What waits for its time waits for a person from now on, after the freeze too.
  UPDATE approvals p SET release_look_at = NULL
   WHERE p.tenant_id = p_tenant AND p.agent_id = p_agent AND p.status = 'pending' AND p.release_look_at IS NOT NULL;
  PERFORM demand_credential(p_tenant, p_credential);
  RETURN QUERY SELECT changed, a.frozen_at, a.frozen_reason FROM agents a WHERE a.tenant_id = p_tenant
    AND a.id = p_agent;
END $$;
