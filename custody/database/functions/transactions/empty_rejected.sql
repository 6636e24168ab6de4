-- Promises: Deletes the bytes of orders that were rejected a month ago; digest, effects and results stay.
-- Runs as: definer
-- Execute: scheduler

CREATE FUNCTION empty_rejected(p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_emptied bigint;
BEGIN
  UPDATE transactions SET order_text = '', data = NULL WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM transactions t
     WHERE t.status = 'rejected' AND t.order_text <> '' AND t.created_at < service_now() - interval '30 days'
     LIMIT p_limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS v_emptied = ROW_COUNT;
  RETURN v_emptied;
END $$;
