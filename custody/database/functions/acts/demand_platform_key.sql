-- Promises: Raises CU002 unless the platform key still holds. Its lock makes a revocation wait for what the key
--   still does.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION demand_platform_key(p_hash bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM platform_keys WHERE key_hash = p_hash AND revoked_at IS NULL FOR SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'credential revoked' USING ERRCODE = 'CU002'; END IF;
END $$;
