-- Promises: The version of the master key that a sealed value (from byte 2) or a MAC (from byte 1) names; 0 for one
--   cut short.
-- Runs as: caller
-- Execute: signer, identity, definer

CREATE FUNCTION key_version_of(p_made bytea, p_from integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(p_made) >= p_from + 3
    THEN ('x' || encode(substr(p_made, p_from, 4), 'hex'))::bit(32)::integer ELSE 0 END
$$;
