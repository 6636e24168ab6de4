-- Promises: Whether half a mebibyte can be written; leaves nothing.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION room_to_write() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- Some pages, so that the files have to grow; EXTERNAL keeps them from being compressed to nothing.
  INSERT INTO room_trial SELECT repeat('x', 131072) FROM generate_series(1, 4);
  RAISE EXCEPTION USING ERRCODE = 'CU010';
EXCEPTION
  WHEN SQLSTATE 'CU010' THEN RETURN true;
  WHEN disk_full THEN RETURN false;
END $$;
