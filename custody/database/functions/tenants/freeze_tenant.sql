-- Promises: Freezes or, without a time, unfreezes a tenant, for its own people or for the operator: p_by is tenant or
--   operator. Each ends only their own freeze, and whose is there keeps its first time and reason.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION freeze_tenant(p_tenant text, p_credential credential, p_by text, p_frozen_at timestamptz,
                              p_reason text)
RETURNS TABLE (changed boolean, frozen_at timestamptz, frozen_reason text, frozen_by text[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM begin_administration(p_tenant, p_credential);
  IF p_by = 'operator' THEN
    UPDATE tenants t SET operator_frozen_at = p_frozen_at, operator_frozen_reason = p_reason,
      frozen_at = LEAST(t.tenant_frozen_at, p_frozen_at),
      frozen_reason = CASE WHEN p_frozen_at IS NULL THEN t.tenant_frozen_reason ELSE p_reason END
     WHERE t.id = p_tenant AND (t.operator_frozen_at IS NULL) <> (p_frozen_at IS NULL);
  ELSE
    UPDATE tenants t SET tenant_frozen_at = p_frozen_at, tenant_frozen_reason = p_reason,
      frozen_at = LEAST(t.operator_frozen_at, p_frozen_at),
      -- People read the operator's reason first: theirs alone cannot help.
      frozen_reason = CASE WHEN t.operator_frozen_at IS NULL THEN p_reason ELSE t.operator_frozen_reason END
     WHERE t.id = p_tenant AND (t.tenant_frozen_at IS NULL) <> (p_frozen_at IS NULL);
  END IF;
  changed := FOUND;
  -- What waits for its time waits for a person from now on, after the freeze too.
  UPDATE approvals p SET release_look_at = NULL
   WHERE p.tenant_id = p_tenant AND p.status = 'pending' AND p.release_look_at IS NOT NULL;
  RETURN QUERY SELECT changed, t.frozen_at, t.frozen_reason,
      array_remove(ARRAY[CASE WHEN t.tenant_frozen_at IS NOT NULL THEN 'tenant' END,
                         CASE WHEN t.operator_frozen_at IS NOT NULL THEN 'operator' END], NULL)
    FROM tenants t WHERE t.id = p_tenant;
END $$;
