-- Promises: Makes a channel (p_kind is given), a browser's for p_user and any other for the tenant, or changes one of
--   the tenant: what p_fields names, and where it leads. full: there are p_most; no row: no such channel.
-- Runs as: caller
-- Execute: identity

CREATE FUNCTION put_channel(p_tenant text, p_id uuid, p_kind text, p_host text, p_last_four text, p_fields jsonb,
                            p_most integer, p_user uuid)
RETURNS TABLE (word text, kind text, id uuid, tenant_id text, user_id uuid)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE v_user uuid := CASE p_kind WHEN 'webpush' THEN p_user END;
BEGIN
  IF p_kind IS NOT NULL THEN
    IF p_most <= (SELECT count(*) FROM notification_channels c WHERE c.tenant_id = p_tenant
                     AND c.user_id IS NOT DISTINCT FROM v_user AND c.deleted_at IS NULL) THEN
      RETURN QUERY SELECT 'full', p_kind, p_id, p_tenant, v_user;
      RETURN;
    END IF;
    INSERT INTO notification_channels (tenant_id, id, user_id, kind, host, last_four, detail, after_minutes)
    VALUES (p_tenant, p_id, v_user, p_kind, p_host, p_last_four, 'words', 0);
  END IF;
  RETURN QUERY
  UPDATE notification_channels c
     SET host = COALESCE(p_host, c.host), last_four = COALESCE(p_last_four, c.last_four),
         events = CASE WHEN p_fields ? 'events' THEN (
           SELECT array_agg(x) FROM jsonb_array_elements_text(
             CASE jsonb_typeof(p_fields->'events') WHEN 'array' THEN p_fields->'events' ELSE '[]' END) x)
           ELSE c.events END,
         detail = COALESCE(p_fields->>'detail', c.detail),
         after_minutes = COALESCE((p_fields->>'after_minutes')::integer, c.after_minutes),
         quiet_start = CASE WHEN p_fields ? 'quiet_zone' THEN (p_fields->>'quiet_start')::time ELSE c.quiet_start END,
         quiet_end = CASE WHEN p_fields ? 'quiet_zone' THEN (p_fields->>'quiet_end')::time ELSE c.quiet_end END,
         quiet_zone = CASE WHEN p_fields ? 'quiet_zone' THEN p_fields->>'quiet_zone' ELSE c.quiet_zone END,
         description = CASE WHEN p_fields ? 'description' THEN p_fields->>'description' ELSE c.description END,
         -- Who sets it has seen the reason.
         disabled_reason = CASE WHEN p_fields ? 'enabled' THEN NULL ELSE c.disabled_reason END,
         enabled = COALESCE((p_fields->>'enabled')::boolean, c.enabled)
   WHERE c.tenant_id = p_tenant AND c.id = p_id AND c.user_id IS NOT DISTINCT FROM v_user AND c.deleted_at IS NULL
  RETURNING 'done', c.kind, c.id, c.tenant_id, c.user_id;
END $$;
