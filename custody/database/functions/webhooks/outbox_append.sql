-- Promises: Appends one event to the outbox, stamped with the time; identity tells of people and of nothing else.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION outbox_append(p_event text, p_agent text, p_data text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF session_user = 'custody_identity' AND p_event NOT LIKE 'user.%' THEN
    RAISE EXCEPTION 'role % may not tell of the event %', session_user, p_event;
  END IF;
  INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
  VALUES (current_setting('custody.tenant'), p_event, p_agent, p_data, service_now());
END $$;
