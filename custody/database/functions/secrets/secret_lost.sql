-- Promises: Why a secret cannot be used, or null.
-- Runs as: caller
-- Execute: signer, proxy

CREATE FUNCTION secret_lost(p_deleted_at timestamptz, p_expires_at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_deleted_at IS NOT NULL THEN 'deleted' WHEN p_expires_at <= service_now() THEN 'expired' END
$$;
