-- Promises: Trigger: what a deleted agent wrote today still counts against its tenant's quotas.
-- Runs as: caller
-- Execute: signer
-- Needed by: tables

CREATE FUNCTION keep_figures() RETURNS trigger LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF OLD.day = utc_day() AND OLD.day_bytes > 0 THEN
    -- Not where the tenant itself goes: its row is gone by now.
    INSERT INTO deleted_agents AS d (tenant_id, day, orders, bytes)
    SELECT t.id, OLD.day, OLD.day_orders, OLD.day_bytes FROM tenants t WHERE t.id = OLD.tenant_id
    ON CONFLICT (tenant_id) DO UPDATE SET day = excluded.day,
       orders = excluded.orders + CASE WHEN d.day = excluded.day THEN d.orders ELSE 0 END,
       bytes = excluded.bytes + CASE WHEN d.day = excluded.day THEN d.bytes ELSE 0 END;
  END IF;
  RETURN NULL;
END $$;
