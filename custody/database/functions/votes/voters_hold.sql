-- Promises: Says whether each of these people is still the member they were, and none of these keys was revoked.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION voters_hold(p_tenant text, p_users uuid[], p_macs bytea[], p_keys uuid[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT count(*) = cardinality(p_users)
    FROM unnest(p_users, p_macs, p_keys) AS v (user_id, mac, key_id)
    JOIN memberships m ON m.tenant_id = p_tenant AND m.user_id = v.user_id AND m.mac = v.mac
    JOIN users u ON u.id = v.user_id AND u.deactivated_at IS NULL
    JOIN approver_keys k ON k.tenant_id = p_tenant AND k.id = v.key_id AND k.user_id = v.user_id
     AND k.revoked_at IS NULL);
END $$;
