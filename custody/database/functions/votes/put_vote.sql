-- Promises: Keeps one vote, in place of an earlier one of the same person; false where the key was revoked, or its
--   counter did not rise.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION put_vote(p_tenant text, p_vote vote) RETURNS boolean
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  UPDATE approver_keys SET sign_count = p_vote.sign_count
   WHERE tenant_id = p_tenant AND id = p_vote.key_id AND user_id = p_vote.user_id AND revoked_at IS NULL
     AND (sign_count < p_vote.sign_count OR (sign_count = 0 AND p_vote.sign_count = 0));
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO approval_votes AS v (tenant_id, kind, subject, user_id, key_id, authenticator_data, client_data,
                                   signature, until, voted_at)
  VALUES (p_tenant, p_vote.kind, p_vote.subject, p_vote.user_id, p_vote.key_id, p_vote.authenticator_data,
          p_vote.client_data, p_vote.signature, p_vote.until, service_now())
  ON CONFLICT (tenant_id, kind, subject, user_id) DO UPDATE SET key_id = excluded.key_id,
    authenticator_data = excluded.authenticator_data, client_data = excluded.client_data,
    signature = excluded.signature, until = excluded.until, voted_at = excluded.voted_at;
  RETURN true;
END $$;
