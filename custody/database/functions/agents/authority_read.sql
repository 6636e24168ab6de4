-- Promises: The living signers and quorums of an agent with their head and the signers' sealed credentials, as the JSON
--   text of `StoredAuthority` (custody/identity/authority.py). Rows stand by id, bytes in base64 without line ends,
--   times in microseconds since 1970.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION authority_read(p_tenant text, p_agent text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT json_build_array(
    (SELECT json_build_array(h.version, h.count, replace(encode(h.mac, 'base64'), E'\n', ''))
       FROM authority_heads h WHERE h.tenant_id = p_tenant AND h.agent_id = p_agent),
    COALESCE((SELECT json_agg(json_build_array(s.id, s.signer_type, s.subject_type, s.subject_id, s.key_type,
                replace(encode(s.public_key, 'base64'), E'\n', ''), s.permissions, s.policy_ids, s.status,
                (extract(epoch FROM s.not_before) * 1000000)::bigint,
                (extract(epoch FROM s.expires_at) * 1000000)::bigint)
                ORDER BY s.id)
       FROM signers s WHERE s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.status <> 'revoked'), '[]'),
    COALESCE((SELECT json_agg(json_build_array(q.id, q.threshold, q.members, q.children, q.permissions, q.status)
                ORDER BY q.id)
       FROM key_quorums q WHERE q.tenant_id = p_tenant AND q.agent_id = p_agent AND q.status <> 'revoked'), '[]'),
    COALESCE((SELECT json_object_agg(x.owner, replace(encode(x.blob, 'base64'), E'\n', ''))
       FROM signers s JOIN sealed x ON x.tenant_id = p_tenant AND x.owner_kind = 'signer' AND x.owner = s.id::text
        AND x.purpose = 'credential'
      WHERE s.tenant_id = p_tenant AND s.agent_id = p_agent AND s.status <> 'revoked'), '{}'))::text);
END $$;
