-- Promises: Moves rows from the queue into the log with their checkpoint. False: somebody else sealed meanwhile.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION audit_seal(p_tenant text, p_from bigint, p_seqs bigint[], p_hashes bytea[], p_levels integer[],
                           p_positions bigint[],
    p_nodes bytea[], p_root bytea, p_frontier bytea[], p_note text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE v_size bigint; v_at timestamptz; v_taken bigint;
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  SELECT c.size, c.created_at INTO v_size, v_at FROM audit_checkpoints c WHERE c.tenant_id = p_tenant
    ORDER BY c.size DESC LIMIT 1;
  IF COALESCE(v_size, 0) <> p_from THEN RETURN false; END IF;
  DELETE FROM audit_unsealed WHERE tenant_id = p_tenant AND seq = ANY (p_seqs);
  GET DIAGNOSTICS v_taken = ROW_COUNT;
  IF v_taken <> cardinality(p_seqs) THEN RAISE EXCEPTION 'rows of log % are sealed already', p_tenant; END IF;
  INSERT INTO audit_leaves (tenant_id, log_index, seq, hash)
  SELECT p_tenant, p_from + n.place - 1, n.seq, n.hash FROM unnest(p_seqs, p_hashes)
    WITH ORDINALITY AS n (seq, hash, place);
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
