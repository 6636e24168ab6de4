-- Promises: Whether anything is sealed: a new master key is made only over an empty database.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION anything_sealed() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT EXISTS (SELECT FROM sealed) $$;
