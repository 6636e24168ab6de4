-- Promises: The newest migration that this database has, and the digest of the files of functions applied to it.
-- Runs as: definer
-- Execute: api, signer, identity, scheduler, proxy

CREATE FUNCTION schema_version() RETURNS TABLE (migration text, functions text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT (SELECT max(m.name) FROM tortoise_migrations m WHERE m.app = 'custody'),
         -- As custody/database/texts.py does.
         (SELECT encode(sha256(convert_to(string_agg(a.name || a.file, '' ORDER BY a.name COLLATE "C"), 'UTF8')), 'hex')
            FROM applied_sql a)
$$;
