-- The sealed log over the audit rows, its checkpoints, and the indexes that people search the rows by.
--
-- Nobody may change or delete what is sealed: not even the functions here can. docs/audit.md.

-- ---------------------------------------------------------------- the log

CREATE TABLE audit_leaves (
  tenant_id text NOT NULL,
  log_index bigint NOT NULL CHECK (log_index >= 0),
  seq       bigint NOT NULL,
  hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (tenant_id, log_index),
  UNIQUE (tenant_id, seq)
);
COMMENT ON TABLE audit_leaves IS 'The place of each audit row in the log of its tenant: without gaps, in the order of sealing.';

CREATE TABLE audit_nodes (
  tenant_id text NOT NULL,
  level     smallint NOT NULL CHECK (level > 0),
  position  bigint NOT NULL CHECK (position >= 0),
  hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
  PRIMARY KEY (tenant_id, level, position)
);
COMMENT ON TABLE audit_nodes IS 'Every fourth level of complete subtrees, so that a proof reads few rows, however long the log is.';

CREATE TABLE audit_checkpoints (
  tenant_id  text NOT NULL,
  size       bigint NOT NULL CHECK (size > 0),
  root       bytea NOT NULL CHECK (octet_length(root) = 32),
  frontier   bytea[] NOT NULL,
  note       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT service_now(),
  PRIMARY KEY (tenant_id, size)
);
COMMENT ON COLUMN audit_checkpoints.frontier IS 'Roots of the complete subtrees that the tree is made of, largest first: all that appending needs.';

CREATE TABLE audit_spans (
  tenant_id text NOT NULL,
  position  bigint NOT NULL CHECK (position >= 0),
  first_seq bigint NOT NULL,
  last_seq  bigint NOT NULL,
  oldest    timestamptz NOT NULL,
  newest    timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, position)
);
COMMENT ON TABLE audit_spans IS 'Bounds of each 512 rows of a log, so that a search by time needs no index that acting pays for.';

CREATE FUNCTION audit_waiting(p_after text, p_limit integer) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  -- One step of the index for each tenant, however many rows of it wait.
  WITH RECURSIVE t AS (
    (SELECT tenant_id FROM audit_unsealed WHERE tenant_id > p_after ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT u.tenant_id FROM audit_unsealed u WHERE u.tenant_id > t.tenant_id ORDER BY u.tenant_id LIMIT 1)
      FROM t WHERE t.tenant_id IS NOT NULL
  )
  SELECT tenant_id FROM t WHERE tenant_id IS NOT NULL LIMIT p_limit
$$;
COMMENT ON FUNCTION audit_waiting IS 'Logs with rows that are not sealed yet, in order, behind one of them.';

CREATE FUNCTION audit_backlog(p_limit integer) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT count(*) FROM (SELECT FROM audit_unsealed LIMIT p_limit) u
$$;

CREATE FUNCTION audit_sizes(p_tenants text[]) RETURNS TABLE (tenant_id text, size bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT t, COALESCE((SELECT c.size FROM audit_checkpoints c WHERE c.tenant_id = t ORDER BY c.size DESC LIMIT 1), 0)
    FROM unnest(p_tenants) AS t
$$;
COMMENT ON FUNCTION audit_sizes IS 'How long these logs are; the signer compares that with what it remembers.';

CREATE FUNCTION audit_seal(p_tenant text, p_from bigint, p_seqs bigint[], p_hashes bytea[], p_levels integer[], p_positions bigint[],
    p_nodes bytea[], p_root bytea, p_frontier bytea[], p_note text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_size bigint; v_at timestamptz; v_taken bigint;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  SELECT c.size, c.created_at INTO v_size, v_at FROM audit_checkpoints c WHERE c.tenant_id = p_tenant ORDER BY c.size DESC LIMIT 1;
  IF COALESCE(v_size, 0) <> p_from THEN RETURN false; END IF;
  DELETE FROM audit_unsealed WHERE tenant_id = p_tenant AND seq = ANY (p_seqs);
  GET DIAGNOSTICS v_taken = ROW_COUNT;
  IF v_taken <> cardinality(p_seqs) THEN RAISE EXCEPTION 'rows of log % are sealed already', p_tenant; END IF;
  INSERT INTO audit_leaves (tenant_id, log_index, seq, hash)
  SELECT p_tenant, p_from + n.place - 1, n.seq, n.hash FROM unnest(p_seqs, p_hashes) WITH ORDINALITY AS n (seq, hash, place);
  INSERT INTO audit_nodes (tenant_id, level, position, hash)
  SELECT p_tenant, n.level, n.position, n.hash FROM unnest(p_levels, p_positions, p_nodes) AS n (level, position, hash);
  -- Row by row: as a join this could be planned as a walk over all rows of the tenant.
  INSERT INTO audit_spans (tenant_id, position, first_seq, last_seq, oldest, newest)
  SELECT p_tenant, l.log_index / 512, min(l.seq), max(l.seq), min(a.created_at), max(a.created_at)
    FROM audit_leaves l, LATERAL (SELECT created_at FROM audit WHERE tenant_id = p_tenant AND seq = l.seq OFFSET 0) a
   WHERE l.tenant_id = p_tenant AND l.log_index >= p_from / 512 * 512
     AND l.log_index < (p_from + cardinality(p_seqs)) / 512 * 512
   GROUP BY 2;
  INSERT INTO audit_checkpoints (tenant_id, size, root, frontier, note)
  VALUES (p_tenant, p_from + cardinality(p_seqs), p_root, p_frontier, p_note);
  -- The last checkpoint of each minute stays, beside the newest; a proof can be made to any size, kept or not.
  IF v_size IS NOT NULL AND date_trunc('minute', v_at) = date_trunc('minute', service_now()) THEN
    DELETE FROM audit_checkpoints WHERE tenant_id = p_tenant AND size = v_size;
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION audit_seal IS 'Rows leave the queue for the log with their checkpoint. False: somebody else sealed meanwhile.';

-- ---------------------------------------------------------------- searching

-- Each costs every act something, so there are as few as will do. Actions, types of actors and of resources have few
-- values and fewer combinations: one index serves all three, combination by combination. Times have none here: where rows
-- of a time are is known from the spans below, which sealing writes.
CREATE INDEX audit_kind ON audit (tenant_id, action, actor_type, resource_type, seq);
CREATE INDEX audit_actor ON audit (tenant_id, actor_id, seq);
CREATE INDEX audit_resource ON audit (tenant_id, resource_id, seq);
CREATE INDEX audit_request ON audit (tenant_id, request_id, seq);

CREATE FUNCTION audit_says(p_metadata text, p_path text[], p_value text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE v_found jsonb;
BEGIN
  v_found := p_metadata::jsonb #> p_path;
  RETURN jsonb_typeof(v_found) IN ('string', 'number', 'boolean') AND v_found #>> '{}' = p_value;
EXCEPTION WHEN data_exception THEN
  -- A row may hold what jsonb cannot, such as a NUL in a string. It is shown, but not found by its metadata.
  RETURN false;
END $$;

-- ---------------------------------------------------------------- row-level security and grants

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['audit_leaves', 'audit_nodes', 'audit_checkpoints', 'audit_spans'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT ON audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints, audit_spans TO custody_api;
GRANT SELECT ON audit, audit_unsealed, audit_leaves, audit_nodes, audit_checkpoints TO custody_signer;
GRANT SELECT, DELETE ON audit_unsealed TO custody_definer;
GRANT SELECT ON audit TO custody_definer;
GRANT SELECT, INSERT ON audit_leaves TO custody_definer;
GRANT INSERT ON audit_nodes, audit_spans TO custody_definer;
GRANT SELECT, INSERT, DELETE ON audit_checkpoints TO custody_definer;
GRANT EXECUTE ON FUNCTION audit_waiting, audit_backlog, audit_sizes, audit_seal TO custody_signer;
GRANT EXECUTE ON FUNCTION audit_says TO custody_api;

GRANT CREATE ON SCHEMA public TO custody_definer;
ALTER FUNCTION audit_waiting OWNER TO custody_definer;
ALTER FUNCTION audit_backlog OWNER TO custody_definer;
ALTER FUNCTION audit_sizes OWNER TO custody_definer;
ALTER FUNCTION audit_seal OWNER TO custody_definer;
REVOKE CREATE ON SCHEMA public FROM custody_definer;
