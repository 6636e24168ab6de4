-- Promises: The role of a session's person in a tenant, with the MACs by which a worker believes it. No row: the
--   session ended, or the membership ended or began again after the token was made, or the app client at whose page it
--   began does not list that page any more. A factor that was shown for one item counts from `item_counts_from` on, as
--   the session has none of it.
-- Runs as: definer
-- Execute: signer, identity

CREATE FUNCTION session_proof(p_session uuid, p_user uuid, p_tenant text, p_issued_at bigint)
RETURNS TABLE (role text, member_since timestamptz, membership_mac bytea, methods text[], mfa_counts_from bigint,
               item_counts_from bigint, config_version bigint, judging text, judging_mac bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT m.role, m.created_at, m.mac, mfa_methods(p_user), mfa_counts_from(s.mfa_at, u.factors_changed_at),
    mfa_counts_from(u.factors_changed_at, u.factors_changed_at),
    COALESCE(c.version, 0), c.judging, c.mac
    FROM sessions s JOIN users u ON u.id = s.user_id
    JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = s.user_id
    LEFT JOIN tenant_config c ON c.tenant_id = p_tenant
   WHERE s.id = p_session AND s.user_id = p_user AND s.revoked_at IS NULL AND s.expires_at > service_now()
     AND u.deactivated_at IS NULL
     AND (s.client_id IS NULL OR s.tenant_id = p_tenant AND EXISTS (
           SELECT FROM app_clients p WHERE p.tenant_id = p_tenant AND p.id = s.client_id AND p.enabled
              AND (p.document::jsonb -> 'allowedOrigins') ? s.origin))
     AND m.created_at < to_timestamp(p_issued_at + 1)
$$;
