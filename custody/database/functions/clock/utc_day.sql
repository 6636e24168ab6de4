-- Promises: Today's date in UTC, by service_now().
-- Runs as: caller
-- Execute: api, signer

CREATE FUNCTION utc_day() RETURNS date LANGUAGE sql VOLATILE AS $$ SELECT (service_now() AT TIME ZONE 'UTC')::date $$;
