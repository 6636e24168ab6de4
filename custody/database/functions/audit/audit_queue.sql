-- Promises: Trigger: every new audit row waits for its place in the sealed log.
-- Runs as: definer
-- Execute: nobody
-- Needed by: tables

CREATE FUNCTION audit_queue() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO audit_unsealed (tenant_id, seq) VALUES (NEW.tenant_id, NEW.seq);
  RETURN NULL;
END $$;
