-- Promises: Trigger: notifies custody_changes of the tenant whose row changed, for caches of other processes.
-- Runs as: caller
-- Execute: nobody
-- Needed by: tables

CREATE FUNCTION tell_of_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_changes', CASE TG_OP WHEN 'DELETE' THEN OLD.tenant_id ELSE NEW.tenant_id END);
  RETURN NULL;
END $$;
