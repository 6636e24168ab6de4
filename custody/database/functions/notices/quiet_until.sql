-- Promises: The end of the quiet hours that a moment lies in; the moment itself outside of them, or without any.
-- Runs as: caller
-- Execute: definer

CREATE FUNCTION quiet_until(p_at timestamptz, p_start time, p_end time, p_zone text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_there timestamp;
  v_end timestamptz;
BEGIN
  IF p_start IS NULL OR p_start = p_end THEN RETURN p_at; END IF;
  v_there := p_at AT TIME ZONE p_zone;
  IF NOT (CASE WHEN p_start < p_end THEN v_there::time >= p_start AND v_there::time < p_end
               ELSE v_there::time >= p_start OR v_there::time < p_end END) THEN
    RETURN p_at;
  END IF;
  v_end := (v_there::date + CASE WHEN v_there::time < p_end THEN 0 ELSE 1 END + p_end) AT TIME ZONE p_zone;
  -- A clock that was put back passes the same hour twice, and the end may be the first of the two.
  RETURN GREATEST(v_end, p_at);
EXCEPTION WHEN invalid_parameter_value THEN
  -- A zone that this server does not know any more: nobody's events wait for that.
  RETURN p_at;
END $$;
