-- Promises: Appends events to the outbox, stamped with the time: [{event, data}]; identity tells of people and of
--   nothing else.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION outbox_append(p_agent text, p_events json) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF session_user = 'custody_identity'
     AND EXISTS (SELECT FROM json_array_elements(p_events) e WHERE e->>'event' NOT LIKE 'user.%') THEN
    RAISE EXCEPTION 'role % may not tell of these events', session_user;
  END IF;
  INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
  SELECT current_setting('custody.tenant'), e->>'event', p_agent, e->>'data', service_now()
    FROM json_array_elements(p_events) e;
END $$;
