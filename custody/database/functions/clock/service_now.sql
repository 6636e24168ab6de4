-- Promises: The one clock of SQL. Tests replace it as the owner; no process can.
-- Runs as: caller
-- Execute: api, signer, identity, scheduler, proxy, definer
-- Needed by: tables

CREATE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT clock_timestamp()
$$;
