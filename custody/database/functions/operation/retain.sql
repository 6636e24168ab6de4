-- Promises: Deletes one batch of one line of the table retention and returns how many rows went.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION retain(p_what text, p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_line retention; v_gone bigint;
BEGIN
  SELECT * INTO STRICT v_line FROM retention WHERE what = p_what;
  -- A row that somebody holds is left for the next time: nobody waits for this, and this waits for nobody. The moment
  -- is a parameter, so that the plan is made for it and an index can be used.
  EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM %1$I AS r WHERE %2$s LIMIT $2 FOR UPDATE OF r SKIP LOCKED))', v_line.relation, v_line.old)
    USING service_now(), p_limit;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;
