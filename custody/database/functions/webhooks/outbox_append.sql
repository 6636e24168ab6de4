-- Promises: Appends one event to the outbox, stamped with the time.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION outbox_append(p_event text, p_agent text, p_data text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
  VALUES (current_setting('custody.tenant'), p_event, p_agent, p_data, service_now())
$$;
