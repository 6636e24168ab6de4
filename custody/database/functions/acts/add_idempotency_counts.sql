-- Promises: Adds what one process counted, of any tenants: [{tenant, <counter>: n, ...}]. A tenant that was deleted
--   meanwhile is left out.
-- Runs as: caller
-- Execute: api

CREATE FUNCTION add_idempotency_counts(p_counts text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE c record;
BEGIN
  -- In one order for everybody, so that two processes never wait for each other.
  FOR c IN SELECT x.* FROM json_to_recordset(p_counts::json) AS x (
      tenant text, observed bigint, reserved bigint, completed bigint, replayed bigint, conflicts bigint,
      in_flight_conflicts bigint,
      suppressed_auth_responses bigint, invalid_keys bigint, store_errors bigint, skipped_unsafe_context bigint,
      released_on_error bigint) ORDER BY x.tenant LOOP
    PERFORM set_config('custody.tenant', c.tenant, true);
    BEGIN
      INSERT INTO idempotency_counts AS i VALUES (c.tenant, service_now(), service_now(), COALESCE(c.observed, 0),
        COALESCE(c.reserved, 0), COALESCE(c.completed, 0), COALESCE(c.replayed, 0), COALESCE(c.conflicts, 0),
        COALESCE(c.in_flight_conflicts, 0),
        COALESCE(c.suppressed_auth_responses, 0), COALESCE(c.invalid_keys, 0), COALESCE(c.store_errors, 0),
        COALESCE(c.skipped_unsafe_context, 0), COALESCE(c.released_on_error, 0))
      ON CONFLICT (tenant_id) DO UPDATE SET last_seen_at = excluded.last_seen_at,
        observed = i.observed + excluded.observed, reserved = i.reserved + excluded.reserved,
        completed = i.completed + excluded.completed, replayed = i.replayed + excluded.replayed,
        conflicts = i.conflicts + excluded.conflicts,
        in_flight_conflicts = i.in_flight_conflicts + excluded.in_flight_conflicts,
        suppressed_auth_responses = i.suppressed_auth_responses + excluded.suppressed_auth_responses,
        invalid_keys = i.invalid_keys + excluded.invalid_keys, store_errors = i.store_errors + excluded.store_errors,
        skipped_unsafe_context = i.skipped_unsafe_context + excluded.skipped_unsafe_context,
        released_on_error = i.released_on_error + excluded.released_on_error;
    EXCEPTION WHEN foreign_key_violation THEN
      NULL; -- the tenant was deleted meanwhile
    END;
  END LOOP;
END $$;
