-- Promises: Waits for whoever writes a sealed value now, and keeps others from it until the transaction ends.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION hold_sealed() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  LOCK TABLE sealed, identity_sealed IN SHARE MODE;
END $$;
