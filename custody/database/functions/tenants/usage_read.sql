-- Promises: What one tenant has and wrote today, by the names of its quotas.
-- Runs as: caller
-- Execute: api, signer

CREATE FUNCTION usage_read(p_tenant text)
RETURNS TABLE (day date, agents bigint, policy_bytes bigint, orders bigint, orders_per_day bigint, bytes_per_day bigint,
               secrets bigint, credential_routes bigint, webhooks bigint, members bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  day := utc_day();
  SELECT count(*), COALESCE(sum(a.policy_bytes), 0), COALESCE(sum(a.orders), 0),
         COALESCE(sum(a.day_orders) FILTER (WHERE a.day = usage_read.day), 0),
         COALESCE(sum(a.day_bytes) FILTER (WHERE a.day = usage_read.day), 0)
    INTO agents, policy_bytes, orders, orders_per_day, bytes_per_day FROM agents a WHERE a.tenant_id = p_tenant;
  policy_bytes := policy_bytes
    + (SELECT COALESCE(sum(octet_length(s.rules)), 0) FROM policy_sets s WHERE s.tenant_id = p_tenant);
  SELECT orders_per_day + COALESCE(sum(d.orders), 0), bytes_per_day + COALESCE(sum(d.bytes), 0)
    INTO orders_per_day, bytes_per_day FROM deleted_agents d WHERE d.tenant_id = p_tenant AND d.day = usage_read.day;
  SELECT count(*) INTO secrets FROM secrets s WHERE s.tenant_id = p_tenant AND s.deleted_at IS NULL;
  SELECT count(*) INTO credential_routes FROM credential_routes c WHERE c.tenant_id = p_tenant;
  credential_routes := credential_routes + (SELECT count(*) FROM payment_routes p WHERE p.tenant_id = p_tenant);
  SELECT count(*) INTO webhooks FROM webhook_endpoints w WHERE w.tenant_id = p_tenant AND w.deleted_at IS NULL;
  SELECT count(*) INTO members FROM memberships m WHERE m.tenant_id = p_tenant;
  RETURN NEXT;
END $$;
