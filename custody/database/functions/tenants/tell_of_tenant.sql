-- Promises: Trigger: notifies custody_changes of a tenant that was frozen, unfrozen or deleted, for caches of other
--   processes.
-- Runs as: caller
-- Execute: nobody
-- Needed by: tables

CREATE FUNCTION tell_of_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('custody_changes', CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
  RETURN NULL;
END $$;
