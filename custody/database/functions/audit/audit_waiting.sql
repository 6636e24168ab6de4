-- Promises: Logs with rows that are not sealed yet, in order, after the given one.
-- Runs as: definer
-- Execute: signer

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
