-- Promises: Trigger: refuses a value sealed under a retired version of the master key, which no file might hold any
--   more.
-- Runs as: caller
-- Execute: signer, identity
-- Needed by: tables

CREATE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM key_versions
              WHERE version = ('x' || encode(substr(NEW.blob, 2, 4), 'hex'))::bit(32)::integer
                AND retired_at IS NOT NULL) THEN
    RAISE EXCEPTION 'sealed with a version of the master key that is retired' USING ERRCODE = 'CU003';
  END IF;
  RETURN NEW;
END $$;
