-- Promises: Trigger: a tenant that is deleted takes its outbox along.
-- Runs as: definer
-- Execute: nobody
-- Needed by: tables

CREATE FUNCTION forget_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  DELETE FROM outbox WHERE tenant_id = OLD.id;
  RETURN NULL;
END $$;
