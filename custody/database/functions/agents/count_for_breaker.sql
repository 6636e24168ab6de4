-- Promises: Counts one refusal or failure of an agent, once, and freezes it where that is as many as a circuit breaker
--   takes, with audit row and event. Behind the agent's lock: what commits afterwards finds it frozen.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION count_for_breaker(p_tenant text, p_agent text, p_incarnation uuid, p_tx uuid, p_kind text, b breaker,
                                  p_origin text[]) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_now timestamptz := service_now();
BEGIN
  INSERT INTO breaker_marks (tenant_id, agent_id, incarnation, kind, tx_id, at)
  VALUES (p_tenant, p_agent, p_incarnation, p_kind, p_tx, v_now) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  FOR v_place IN 1 .. cardinality(b.minutes) LOOP
    CONTINUE WHEN b.most[v_place] > (
      SELECT count(*) FROM breaker_marks m
       WHERE m.tenant_id = p_tenant AND m.agent_id = p_agent AND m.incarnation = p_incarnation AND m.kind = p_kind
         AND m.at > v_now - make_interval(mins => b.minutes[v_place]));
    UPDATE agents SET frozen_at = v_now, frozen_reason = b.reasons[v_place]
     WHERE tenant_id = p_tenant AND id = p_agent AND frozen_at IS NULL;
    IF FOUND THEN
      UPDATE approvals SET release_look_at = NULL
       WHERE tenant_id = p_tenant AND agent_id = p_agent AND status = 'pending' AND release_look_at IS NOT NULL;
      PERFORM audit_append('system', 'circuit-breaker', 'agent.frozen', 'agent', p_agent,
                           '{"reason":' || to_json(b.reasons[v_place]) || '}', p_origin);
      PERFORM emit(p_agent, b.events[v_place]);
    END IF;
    -- Who unfreezes it begins to count again.
    DELETE FROM breaker_marks
     WHERE tenant_id = p_tenant AND agent_id = p_agent AND incarnation = p_incarnation AND kind = p_kind;
    RETURN;
  END LOOP;
  DELETE FROM breaker_marks
   WHERE tenant_id = p_tenant AND agent_id = p_agent AND incarnation = p_incarnation AND kind = p_kind
     AND at <= v_now - make_interval(mins => (SELECT max(one) FROM unnest(b.minutes) AS u (one)));
END $$;
