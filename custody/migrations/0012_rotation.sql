-- Versions of the master key, and reading everything that one sealed so that it can be written anew.

CREATE TABLE key_versions (
  version     integer PRIMARY KEY CHECK (version > 0),
  fingerprint bytea NOT NULL,
  added_at    timestamptz NOT NULL DEFAULT service_now(),
  begun_at    timestamptz,
  retired_at  timestamptz,
  CONSTRAINT retired_after_begun CHECK (retired_at IS NULL OR begun_at IS NOT NULL)
);
COMMENT ON TABLE key_versions IS 'Which versions there are, never what they are: the newest that was begun seals, on every host.';
COMMENT ON COLUMN key_versions.fingerprint IS 'By it two master key files show that they mean the same key.';
COMMENT ON COLUMN key_versions.retired_at IS 'Nothing was sealed with it any more; nothing may ever be again.';

-- ---------------------------------------------------------------- nothing new under a retired version

CREATE FUNCTION refuse_retired_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM key_versions
              WHERE version = ('x' || encode(substr(NEW.blob, 2, 4), 'hex'))::bit(32)::integer AND retired_at IS NOT NULL) THEN
    RAISE EXCEPTION 'sealed with a version of the master key that is retired' USING ERRCODE = 'CU003';
  END IF;
  RETURN NEW;
END $$;
COMMENT ON FUNCTION refuse_retired_key IS 'A wallet sealed under a key that no file holds any more would be lost; so it is not written.';
CREATE TRIGGER refuse_retired_key BEFORE INSERT OR UPDATE OF blob ON sealed FOR EACH ROW EXECUTE FUNCTION refuse_retired_key();

-- ---------------------------------------------------------------- looking at everything that is sealed, or has a MAC

CREATE FUNCTION key_version_of(p_made bytea, p_from integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(p_made) >= p_from + 3 THEN ('x' || encode(substr(p_made, p_from, 4), 'hex'))::bit(32)::integer ELSE 0 END
$$;
COMMENT ON FUNCTION key_version_of IS 'The version that a sealed value (from byte 2) or a MAC (from byte 1) names; 0 for one cut short.';

CREATE FUNCTION sealed_living(p_table text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_table = 'approvals' THEN $q$status = 'pending'$q$
    WHEN p_table = 'sessions' THEN 'revoked_at IS NULL AND expires_at > service_now()'
    WHEN p_table IN ('sign_in_codes', 'enrolments', 'device_codes') THEN 'expires_at > service_now()'
    WHEN p_table = 'recovery_codes' THEN 'used_at IS NULL'
    ELSE 'true' END
$$;
COMMENT ON FUNCTION sealed_living IS 'Which rows of a table anything is still judged by; of the others nobody looks at the MAC again.';

CREATE FUNCTION sealed_version(p_table text) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF p_table = 'sealed' THEN RETURN 'key_version_of(blob, 2)'; END IF;
  IF NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                  WHERE c.relnamespace = 'public'::regnamespace AND c.relname = p_table AND c.relkind = 'r' AND a.attname = 'mac'
                    AND a.atttypid = 'bytea'::regtype) THEN
    RAISE EXCEPTION 'nothing in % has a MAC', p_table;
  END IF;
  RETURN 'key_version_of(mac, 1)';
END $$;

CREATE FUNCTION sealed_places(p_table text, p_not integer, p_after text[], p_limit integer) RETURNS TABLE (place text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v_columns text; v_texts text; v_after text; v_version text := sealed_version(p_table);
BEGIN
  -- By the primary key, whatever it consists of: each batch goes on where the one before it ended.
  SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY k.n), string_agg(format('t.%I::text', a.attname), ', ' ORDER BY k.n),
         string_agg(format('$1[%s]::%s', k.n, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY k.n)
    INTO v_columns, v_texts, v_after
    FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, n)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
   WHERE i.indrelid = format('public.%I', p_table)::regclass AND i.indisprimary;
  RETURN QUERY EXECUTE format(
    'SELECT ARRAY[%s] FROM %I t WHERE ($1 IS NULL OR (%s) > (%s)) AND ($2 IS NULL OR %s <> $2) AND %s ORDER BY %s LIMIT $3',
    v_texts, p_table, v_columns, v_after, v_version, sealed_living(p_table), v_columns) USING p_after, p_not, p_limit;
END $$;
COMMENT ON FUNCTION sealed_places IS 'Primary keys of living rows after one of them, of those that another version than p_not made; nothing of what is in them.';

CREATE FUNCTION sealed_versions(p_table text) RETURNS TABLE (version integer, count bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT %s, count(*) FROM %I WHERE %s GROUP BY 1', sealed_version(p_table), p_table, sealed_living(p_table));
END $$;
COMMENT ON FUNCTION sealed_versions IS 'How many living rows of a table each version made.';

-- ---------------------------------------------------------------- grants

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON key_versions TO custody_signer;
GRANT SELECT ON policy_heads, approvals, credential_routes, signing_keys, device_codes, enrolments, sign_in_codes TO custody_definer;
GRANT EXECUTE ON FUNCTION sealed_places, sealed_versions, refuse_retired_key, key_version_of TO custody_signer;
GRANT EXECUTE ON FUNCTION key_version_of, sealed_living TO custody_definer;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION sealed_version OWNER TO custody_definer;
ALTER FUNCTION sealed_places OWNER TO custody_definer;
ALTER FUNCTION sealed_versions OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
