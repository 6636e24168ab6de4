-- Promises: The votes on one subject with the keys and memberships behind them, and whether the operator broke the
--   quorum. p_user and p_key: who is about to vote, told last, without evidence.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION quorum_read(p_tenant text, p_agent text, p_kind text, p_subject text, p_user uuid, p_key uuid)
RETURNS TABLE (break_version bigint, break_effective timestamptz, break_mac bytea, ballots text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  SELECT b.policy_version, b.effective_at, b.mac INTO break_version, break_effective, break_mac
    FROM quorum_breaks b WHERE b.tenant_id = p_tenant AND b.agent_id = p_agent;
  IF p_subject IS NOT NULL THEN
    SELECT json_agg(json_build_array(v.user_id, v.key_id, encode(v.authenticator_data, 'hex'),
             encode(v.client_data, 'hex'), encode(v.signature, 'hex'), v.voted_at,
             k.user_id, k.rp_id, k.credential_id, encode(k.public_key, 'hex'), encode(k.mac, 'hex'),
             k.revoked_at IS NOT NULL, k.sign_count, m.role, m.created_at, encode(m.mac, 'hex'))
             ORDER BY v.fresh, v.voted_at, v.user_id)::text
      INTO ballots
      FROM (SELECT a.user_id, a.key_id, a.authenticator_data, a.client_data, a.signature, a.voted_at, false AS fresh
              FROM approval_votes a WHERE a.tenant_id = p_tenant AND a.kind = p_kind AND a.subject = p_subject
            UNION ALL SELECT p_user, p_key, ''::bytea, ''::bytea, ''::bytea, NULL, true WHERE p_key IS NOT NULL) v
      JOIN approver_keys k ON k.tenant_id = p_tenant AND k.id = v.key_id
      JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = v.user_id
      JOIN users u ON u.id = v.user_id AND u.deactivated_at IS NULL;
  END IF;
  RETURN NEXT;
END $$;
