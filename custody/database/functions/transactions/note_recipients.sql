-- Promises: Notes whom a person let an agent's order reach, in the transaction of its signature; a row that was planted
--   there before is written over.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION note_recipients(p_tenant text, p_agent text, p_incarnation uuid, r sign_record) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO recipients (tenant_id, agent_id, incarnation, kind, name, mac, noted_at)
  SELECT p_tenant, p_agent, p_incarnation, n.kind, n.name, n.mac, service_now()
    FROM unnest(r.recipient_kinds, r.recipient_names, r.recipient_macs) AS n (kind, name, mac)
  ON CONFLICT (tenant_id, agent_id, incarnation, kind, name) DO UPDATE SET mac = excluded.mac
$$;
