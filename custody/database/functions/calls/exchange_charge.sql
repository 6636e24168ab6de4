-- Promises: Gives back the whole charge of an agent's call that a payment of it pays for: once for each payment, and
--   only for one that was signed and charged dollars itself, so that what counts is never less than what is owed.
--   False: nothing came back.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION exchange_charge(p_tenant text, p_agent text, p_id uuid, p_tx uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE v_charged bigint;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE call_charges c SET paid_by = p_tx
   WHERE tenant_id = p_tenant AND id = p_id AND agent_id = p_agent AND returned IS NULL AND paid_by IS NULL
     AND EXISTS (SELECT FROM transactions t
                  WHERE t.tenant_id = p_tenant AND t.id = p_tx AND t.agent_id = p_agent
                    AND t.incarnation = c.incarnation AND t.signature IS NOT NULL
                    AND t.moved::json ->> 'usd' IS NOT NULL)
     AND NOT EXISTS (SELECT FROM call_charges o WHERE o.tenant_id = p_tenant AND o.paid_by = p_tx)
  RETURNING micro_usd INTO v_charged;
  IF NOT FOUND THEN RETURN false; END IF;
  RETURN return_charge(p_tenant, p_id, v_charged);
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END $$;
