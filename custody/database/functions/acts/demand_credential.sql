-- Promises: Raises CU002 unless the credential that began the act still holds in this tenant. Null: the act has none.
-- Runs as: caller
-- Execute: signer, identity

CREATE FUNCTION demand_credential(p_tenant text, p_credential credential) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_holds boolean := false;
BEGIN
  -- Raised, not returned: nothing may stay of an act that a revoked credential began.
  IF p_credential IS NULL THEN RETURN; END IF;
  CASE p_credential.kind
    WHEN 'tenant_key' THEN
      v_holds := EXISTS (SELECT FROM tenant_keys WHERE tenant_id = p_tenant AND key_hash = p_credential.hash
                            AND revoked_at IS NULL AND (retires_at IS NULL OR retires_at > service_now()));
    WHEN 'app_secret' THEN
      v_holds := EXISTS (SELECT FROM app_secrets s JOIN app_clients c ON c.tenant_id = s.tenant_id
        AND c.id = s.client_id
                          WHERE s.tenant_id = p_tenant AND s.secret_hash = p_credential.hash AND s.revoked_at IS NULL
                            AND c.enabled AND (s.retires_at IS NULL OR s.retires_at > service_now()));
    WHEN 'session' THEN
      -- A session, and the membership it acts by: a role that changed has another MAC.
      v_holds := EXISTS (SELECT FROM sessions s JOIN users u ON u.id = s.user_id
                           JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = s.user_id
                          WHERE s.id = p_credential.session AND m.mac = p_credential.membership_mac
                            AND s.revoked_at IS NULL AND s.expires_at > service_now() AND u.deactivated_at IS NULL
                            AND (s.client_id IS NULL OR EXISTS (SELECT FROM app_clients p
                              WHERE p.tenant_id = p_tenant AND p.id = s.client_id AND p.enabled
                                AND (p.document::jsonb -> 'allowedOrigins') ? s.origin)));
    ELSE
      RAISE EXCEPTION 'unknown kind of credential %', p_credential.kind;
  END CASE;
  IF NOT v_holds THEN RAISE EXCEPTION 'credential revoked' USING ERRCODE = 'CU002'; END IF;
END $$;
