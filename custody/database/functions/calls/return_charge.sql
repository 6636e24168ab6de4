-- Promises: Gives back what a metered call left of its charge, into the hour in which it counts, once and never more
--   than it was. False: it came back before, or there is no such charge.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION return_charge(p_tenant text, p_id uuid, p_micro_usd bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE c call_charges; v_set text;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE call_charges SET returned = LEAST(GREATEST(p_micro_usd, 0), micro_usd)
   WHERE tenant_id = p_tenant AND id = p_id AND returned IS NULL
  RETURNING * INTO c;
  IF NOT FOUND THEN RETURN false; END IF;
  -- Without the agent's lock: who is judged meanwhile sees more spent than was, never less.
  UPDATE spend SET amount = amount - c.returned
   WHERE tenant_id = p_tenant AND agent_id = c.agent_id AND incarnation = c.incarnation AND asset = 'usd'
     AND hour = c.hour AND c.returned > 0;
  UPDATE spend_totals SET amount = GREATEST(amount - c.returned, 0)
   WHERE tenant_id = p_tenant AND agent_id = c.agent_id AND incarnation = c.incarnation AND asset = 'usd'
     AND c.returned > 0;
  FOR v_set IN SELECT s FROM unnest(c.sets) AS s ORDER BY s LOOP
    EXIT WHEN c.returned = 0;
    -- In the order in which every write takes them: the total, which is the lock of the sum, and then the hour.
    UPDATE set_totals SET amount = amount - c.returned WHERE tenant_id = p_tenant AND set_id = v_set AND asset = 'usd';
    UPDATE set_spend SET amount = amount - c.returned
     WHERE tenant_id = p_tenant AND set_id = v_set AND asset = 'usd' AND hour = c.hour;
  END LOOP;
  RETURN true;
END $$;
