-- Promises: Puts events into the outbox: [{event, data, mark?}]. An event with a mark is emitted at most once a
--   minute.
-- Runs as: caller
-- Execute: signer, identity

CREATE FUNCTION emit(p_agent text, p_events text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE e json;
BEGIN
  -- Most have no mark. A text that merely says the word goes the longer way, and comes to the same.
  IF p_events NOT LIKE '%"mark"%' THEN
    PERFORM outbox_append(p_agent, p_events::json);
    RETURN;
  END IF;
  FOR e IN SELECT json_array_elements(p_events::json) LOOP
    IF e->>'mark' IS NOT NULL THEN
      INSERT INTO event_marks AS m (tenant_id, agent_id, mark, at)
      VALUES (current_setting('custody.tenant'), p_agent, e->>'mark', service_now())
      ON CONFLICT (tenant_id, agent_id, mark) DO UPDATE SET at = excluded.at
        WHERE m.at <= service_now() - interval '1 minute';
      CONTINUE WHEN NOT FOUND;
    END IF;
    PERFORM outbox_append(p_agent, json_build_array(e));
  END LOOP;
END $$;
