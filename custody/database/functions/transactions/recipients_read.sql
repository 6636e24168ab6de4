-- Promises: Those of some recipients whom a person let an agent reach before, with their MACs, and of those who were
--   paid on one chain the p_newest last ones.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION recipients_read(p_tenant text, p_agent text, p_incarnation uuid, p_kinds text[], p_names text[],
                                p_place text, p_newest integer)
RETURNS TABLE (kind text, name text, mac bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT r.kind, r.name, r.mac FROM unnest(p_kinds, p_names) AS n (kind, name)
    JOIN recipients r ON r.tenant_id = p_tenant AND r.agent_id = p_agent AND r.incarnation = p_incarnation
     AND r.kind = n.kind AND r.name = n.name;
  IF p_newest > 0 THEN
    RETURN QUERY SELECT r.kind, r.name, r.mac FROM recipients r
     WHERE r.tenant_id = p_tenant AND r.agent_id = p_agent AND r.incarnation = p_incarnation AND r.kind = 'paid'
       AND starts_with(r.name, p_place) ORDER BY r.noted_at DESC LIMIT p_newest;
  END IF;
END $$;
