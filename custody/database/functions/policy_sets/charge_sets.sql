-- Promises: Counts charges for all agents of policy sets, once what they are for is written; gives back p_done. Raises
--   CU005, so that nothing of the transaction stays, where a sum would pass a limit. The rows of the sums are locked
--   here and last, in one order: whoever has one waits for nothing but the commit.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION charge_sets(p_tenant text, p_charges set_charge[], p_done text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE c record; v_total numeric; v_day numeric; v_week numeric; v_now timestamptz;
BEGIN
  IF p_done <> 'done' THEN RETURN p_done; END IF;
  FOR c IN SELECT n.set_id, n.asset, sum(n.amount) AS amount, min(n.per_day) AS per_day, min(n.per_week) AS per_week,
                  min(n.total) AS total
             FROM unnest(p_charges) AS n GROUP BY n.set_id, n.asset ORDER BY n.set_id, n.asset LOOP
    INSERT INTO set_totals AS t (tenant_id, set_id, asset, amount) VALUES (p_tenant, c.set_id, c.asset, c.amount)
    ON CONFLICT (tenant_id, set_id, asset) DO UPDATE SET amount = t.amount + excluded.amount
    RETURNING amount INTO v_total;
    -- After the lock, so that what is summed is in no earlier hour than what was counted while it was waited for.
    v_now := service_now();
    INSERT INTO set_spend AS s (tenant_id, set_id, asset, hour, amount)
    VALUES (p_tenant, c.set_id, c.asset, date_trunc('hour', v_now), c.amount)
    ON CONFLICT (tenant_id, set_id, asset, hour) DO UPDATE SET amount = s.amount + excluded.amount;
    IF v_total > c.total THEN RAISE EXCEPTION 'no room in a policy set' USING ERRCODE = 'CU005'; END IF;
    IF c.per_day IS NOT NULL OR c.per_week IS NOT NULL THEN
      -- A statement after the lock, so it sees what was committed while the lock was waited for.
      SELECT w.day, w.week INTO v_day, v_week FROM set_windows(p_tenant, c.set_id, c.asset, v_now) AS w;
      IF v_day > c.per_day OR v_week > c.per_week THEN
        RAISE EXCEPTION 'no room in a policy set' USING ERRCODE = 'CU005';
      END IF;
    END IF;
  END LOOP;
  RETURN p_done;
END $$;
