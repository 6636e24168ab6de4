-- Promises: Keeps a batch of calls that was judged as an intent, if nothing that it was judged on has changed. stale:
--   nothing was written, read again. CU003: a signature that authorised it was used before.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION propose_write(p_tenant text, p_agent text, g sign_guard, p_act act, p intent_row, p_events text)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_used  integer;
  v_today date := utc_day();
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  UPDATE agents SET ledger_version = ledger_version + 1,
         day_orders = CASE WHEN day = v_today THEN day_orders ELSE 0 END,
         day_bytes = CASE WHEN day = v_today THEN day_bytes ELSE 0 END + g.stored_bytes, day = v_today
   WHERE tenant_id = p_tenant AND id = p_agent AND incarnation = g.incarnation AND ledger_version = g.ledger_version
     AND policy_version = g.policy_version AND frozen_at IS NULL AND (g.epoch IS NULL OR token_epoch = g.epoch);
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF EXISTS (SELECT FROM tenants WHERE id = p_tenant AND frozen_at IS NOT NULL)
     OR COALESCE((SELECT version FROM tenant_config WHERE tenant_id = p_tenant), 0) <> g.config_version THEN
    RETURN 'stale';
  END IF;
  IF g.used_by IS NOT NULL THEN
    INSERT INTO used_signatures (tenant_id, key_name, signature_hash, idempotency_hash, expires_at)
    SELECT p_tenant, u.key_name, u.hash, g.used_for, g.used_until
      FROM unnest(g.used_by, g.used_marks) AS u (key_name, hash)
    ON CONFLICT (tenant_id, key_name, signature_hash) DO NOTHING;
    GET DIAGNOSTICS v_used = ROW_COUNT;
    IF v_used <> cardinality(g.used_by) THEN
      RAISE EXCEPTION 'a signature was used before' USING ERRCODE = 'CU003';
    END IF;
  END IF;
  PERFORM put_intent(p_tenant, p);
  PERFORM finish_act(p_tenant, p_act, 'intent.created', 'intent', p.id::text);
  PERFORM emit(p_agent, p_events);
  RETURN 'done';
END $$;
