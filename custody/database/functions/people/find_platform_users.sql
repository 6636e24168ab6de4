-- Promises: People whom a selector means, at most two, which says that it is ambiguous; with a tenant only its members.
--   p_by: email, phone, wallet, contract, external_id, account (of the tenant's own identity provider: the subject
--   begins with p_head, and read backwards it is like p_value), or a kind of identity.
-- Runs as: definer
-- Execute: api

CREATE FUNCTION find_platform_users(p_tenant text, p_by text, p_value text, p_head text) RETURNS SETOF platform_person
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE v_found uuid[];
BEGIN
  -- Each selector is a statement of its own, so that each is planned for its own index.
  v_found := CASE
    WHEN p_by = 'email' THEN ARRAY(
      SELECT i.user_id FROM identities i WHERE i.kind = 'email' AND i.subject = p_value
      UNION
      -- Whom the tenant's own identity provider named so: nobody else may say what an address means there.
      (SELECT u.id FROM users u JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = u.id
        WHERE lower(u.profile_email) = p_value
          AND EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.tenant_id = p_tenant) LIMIT 2))
    WHEN p_by = 'phone' THEN ARRAY(
      SELECT DISTINCT f.user_id FROM factors f WHERE f.kind = 'sms' AND f.subject = p_value
         AND (p_tenant IS NULL OR EXISTS (
               SELECT FROM memberships m WHERE m.tenant_id = p_tenant AND m.user_id = f.user_id)) LIMIT 2)
    WHEN p_by = 'wallet' THEN ARRAY(
      SELECT i.user_id FROM identities i WHERE i.kind = 'wallet' AND lower(i.subject) = lower(p_value) LIMIT 2)
    WHEN p_by = 'contract' AND p_value LIKE '%:%' THEN ARRAY(
      SELECT i.user_id FROM identities i WHERE i.kind = 'contract' AND lower(i.subject) = lower(p_value) LIMIT 2)
    WHEN p_by = 'contract' THEN ARRAY(
      SELECT DISTINCT i.user_id FROM identities i
       WHERE i.kind = 'contract' AND lower(split_part(i.subject, ':', 2)) = lower(p_value)
         AND (p_tenant IS NULL OR EXISTS (
               SELECT FROM memberships m WHERE m.tenant_id = p_tenant AND m.user_id = i.user_id)) LIMIT 2)
    WHEN p_by = 'external_id' THEN ARRAY(
      SELECT x.user_id FROM wallet_external_ids x WHERE x.tenant_id = p_tenant AND x.external_id = p_value)
    WHEN p_by = 'account' THEN ARRAY(
      SELECT i.user_id FROM identities i
       WHERE i.tenant_id = p_tenant AND reverse(i.subject) LIKE p_value AND starts_with(i.subject, p_head) LIMIT 2)
    ELSE ARRAY(SELECT i.user_id FROM identities i WHERE i.kind = p_by AND i.subject = p_value)
    END;
  RETURN QUERY SELECT p.* FROM unnest(v_found) f (user_id), LATERAL platform_user(f.user_id) p
    WHERE p_tenant IS NULL OR EXISTS (
      SELECT FROM memberships m WHERE m.tenant_id = p_tenant AND m.user_id = f.user_id)
    LIMIT 2;
END $$;
