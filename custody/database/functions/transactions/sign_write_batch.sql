-- Promises: The writes of several agents' plain orders and calls in one transaction, each as sign_write does it; the
--   answer of each, in their order. It never waits for an agent's row: what somebody else holds is `skipped`, and
--   nothing of it is written. An error in one undoes all.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION sign_write_batch(p_tenants text[], p_agents text[], p_guards sign_guard[], p_counts integer[],
                                 p_acts act[], p_records sign_record[], p_called integer[], p_calls call_charge[],
                                 p_sets set_charge[])
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  v_found text[] := array_fill('skipped'::text, ARRAY[cardinality(p_tenants)]);
  v_first integer := 1;
  v_call  integer := 1;
BEGIN
  FOR v_place IN 1 .. cardinality(p_tenants) LOOP
    PERFORM set_config('custody.tenant', p_tenants[v_place], true);
    PERFORM FROM agents WHERE tenant_id = p_tenants[v_place] AND id = p_agents[v_place]
       FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN v_found[v_place] := 'held'; END IF;
  END LOOP;
  FOR v_place IN 1 .. cardinality(p_tenants) LOOP
    IF v_found[v_place] = 'held' THEN
      v_found[v_place] := sign_write(
        p_tenants[v_place], p_agents[v_place], p_guards[v_place], NULL,
        p_acts[v_first : v_first + p_counts[v_place] - 1], p_records[v_first : v_first + p_counts[v_place] - 1],
        NULL, NULL, p_calls[v_call : v_call + p_called[v_place] - 1]);
    END IF;
    v_first := v_first + p_counts[v_place];
    v_call := v_call + p_called[v_place];
  END LOOP;
  -- The sums of many agents last, once for all of a tenant's: their locks are held for the commit alone.
  FOR v_place IN 1 .. cardinality(p_tenants) LOOP
    IF p_tenants[v_place] IS DISTINCT FROM p_tenants[v_place - 1] AND cardinality(p_sets) > 0 THEN
      PERFORM set_config('custody.tenant', p_tenants[v_place], true);
      PERFORM charge_sets(p_tenants[v_place], ARRAY(
        SELECT ROW(s.*)::set_charge FROM unnest(p_sets) AS s
         WHERE p_tenants[s.place] = p_tenants[v_place] AND v_found[s.place] = 'done'), 'done');
    END IF;
  END LOOP;
  RETURN v_found;
END $$;
