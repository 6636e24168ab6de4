-- Promises: Creates a tenant with its first key, and its owner if there is one. p_home: where it was asked, the
--   operator's log or the tenant of the person who asks. too_many: this person made as many as one may.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION create_tenant(p_home text, p_credential credential, p_act act, p_new new_tenant, p_limit integer)
RETURNS text
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_made_by uuid := CASE WHEN p_credential IS NULL THEN NULL ELSE p_new.owner END;
BEGIN
  IF v_made_by IS NOT NULL THEN
    -- The lock: of two that one person asks for at once, the second one sees the first.
    PERFORM FROM users WHERE id = v_made_by FOR NO KEY UPDATE;
    IF tenants_made_by(v_made_by) >= p_limit THEN RETURN 'too_many'; END IF;
  END IF;
  PERFORM set_config('custody.tenant', p_new.id, true);
  INSERT INTO tenants (id, name, webhook_url, created_at, made_by)
  VALUES (p_new.id, p_new.name, p_new.webhook_url, p_new.created_at, v_made_by);
  INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at)
  VALUES (p_new.id, p_new.key_hash, p_new.key_prefix, p_new.key_mac, p_new.created_at);
  IF p_new.owner IS NOT NULL THEN
    INSERT INTO memberships (tenant_id, user_id, role, mac, created_at)
    VALUES (p_new.id, p_new.owner, 'owner', p_new.membership_mac, p_new.created_at);
  END IF;
  PERFORM audit_append(p_act.actor_type, p_act.actor_id, 'tenant.created', 'tenant', p_new.id, p_act.metadata,
                       p_act.origin);
  PERFORM set_config('custody.tenant', p_home, true);
  PERFORM demand_credential(p_home, p_credential);
  PERFORM finish_act(p_home, p_act, 'tenant.created', 'tenant', p_new.id);
  RETURN 'done';
END $$;
