-- Promises: Takes an intent from the state that was read to the next; false: it is in another one, or its time is up.
--   What is being executed, or is expired, is not asked for its time.
-- Runs as: caller
-- Execute: signer

CREATE FUNCTION take_step(p_tenant text, s intent_step) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE intents
     SET status = s.status, baseline = COALESCE(s.baseline, baseline),
         authorized_by = COALESCE(s.authorized_by, authorized_by),
         authorized_at = COALESCE(s.authorized_at, authorized_at),
         result = COALESCE(s.result, result), reason = COALESCE(s.reason, reason), mac = s.next_mac,
         updated_at = service_now()
   -- The MAC is over the state, so who finds another one finds another state.
   WHERE tenant_id = p_tenant AND id = s.id AND mac = s.mac
     AND (status = 'executing' OR s.status = 'expired' OR expires_at > service_now())
     -- The word of who is no owner or admin any more carries nothing out.
     AND (s.status <> 'executed' OR EXISTS (
       SELECT FROM memberships m JOIN users u ON u.id = m.user_id AND u.deactivated_at IS NULL
        WHERE m.tenant_id = p_tenant AND m.user_id = intents.authorized_by AND m.role IN ('owner', 'admin')));
  RETURN FOUND;
END $$;
