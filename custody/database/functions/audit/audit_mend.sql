-- Promises: Makes the queue of one log hold exactly its rows that have no leaf. No row and no leaf is changed.
-- Runs as: definer
-- Execute: signer

CREATE FUNCTION audit_mend(p_tenant text) RETURNS TABLE (sealed_already bigint, without_row bigint, queued bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  DELETE FROM audit_unsealed u WHERE u.tenant_id = p_tenant
     AND EXISTS (SELECT FROM audit_leaves l WHERE l.tenant_id = p_tenant AND l.seq = u.seq);
  GET DIAGNOSTICS sealed_already = ROW_COUNT;
  DELETE FROM audit_unsealed u WHERE u.tenant_id = p_tenant
     AND NOT EXISTS (SELECT FROM audit a WHERE a.tenant_id = p_tenant AND a.seq = u.seq);
  GET DIAGNOSTICS without_row = ROW_COUNT;
  INSERT INTO audit_unsealed (tenant_id, seq)
  SELECT a.tenant_id, a.seq FROM audit a WHERE a.tenant_id = p_tenant
     AND NOT EXISTS (SELECT FROM audit_leaves l WHERE l.tenant_id = p_tenant AND l.seq = a.seq)
      ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS queued = ROW_COUNT;
  RETURN NEXT;
END $$;
