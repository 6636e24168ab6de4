-- Promises: Trigger: every new audit row waits for its place in the sealed log.
-- Runs as: caller
-- Execute: nobody
-- Needed by: tables

CREATE FUNCTION audit_queue() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  -- Only the definer's functions write audit rows, so this runs as the definer too, without the cost of becoming it.
  INSERT INTO public.audit_unsealed (tenant_id, seq) VALUES (NEW.tenant_id, NEW.seq);
  RETURN NULL;
END $$;
