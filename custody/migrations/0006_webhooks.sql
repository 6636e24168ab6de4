-- Webhook endpoints and deliveries: the tables. Endpoints, which have a sealed secret, are the signer's to write, and so is what a
-- person does to a delivery; what becomes of a delivery by itself is the scheduler's.

CREATE TABLE webhook_endpoints (
  tenant_id        text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id               uuid NOT NULL,
  url              text NOT NULL,
  events           text[],
  enabled          boolean NOT NULL DEFAULT true,
  disabled_reason  text,
  max_retries      integer NOT NULL CHECK (max_retries BETWEEN 0 AND 10),
  retry_backoff_ms integer NOT NULL CHECK (retry_backoff_ms >= 1000),
  description      text,
  created_at       timestamptz NOT NULL DEFAULT service_now(),
  deleted_at       timestamptz,
  PRIMARY KEY (tenant_id, id)
);
COMMENT ON COLUMN webhook_endpoints.events IS 'null: every event there is, later ones too.';
COMMENT ON COLUMN webhook_endpoints.deleted_at IS 'The row stays while deliveries speak of it; its secret goes at once.';

CREATE TABLE deliveries (
  tenant_id       text NOT NULL REFERENCES tenants ON DELETE CASCADE,
  id              uuid NOT NULL DEFAULT gen_random_uuid(),
  endpoint_id     uuid NOT NULL,
  event_number    bigint,
  event           text NOT NULL,
  body            text,
  url             text NOT NULL,
  status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'delivered', 'failed')),
  attempts        integer NOT NULL DEFAULT 0,
  max_attempts    integer NOT NULL,
  next_retry_at   timestamptz,
  error           text,
  response_status integer,
  created_at      timestamptz NOT NULL DEFAULT service_now(),
  delivered_at    timestamptz,
  replayed_from   uuid,
  PRIMARY KEY (tenant_id, id),
  FOREIGN KEY (tenant_id, endpoint_id) REFERENCES webhook_endpoints ON DELETE CASCADE
);
COMMENT ON COLUMN deliveries.body IS 'Only of a test, which is no event: the others are made from their event, the same bytes each time.';
COMMENT ON COLUMN deliveries.url IS 'Where it was meant to go: an old event never goes to an address that was given later.';
COMMENT ON COLUMN deliveries.next_retry_at IS 'When it is due: at first at once; of one that is processing, when its claim is over; null when nothing is left to do.';
COMMENT ON COLUMN deliveries.error IS 'A short word of ours for what went wrong, never what the receiver said.';
CREATE INDEX deliveries_due ON deliveries (next_retry_at) WHERE next_retry_at IS NOT NULL;
CREATE INDEX deliveries_newest ON deliveries (tenant_id, endpoint_id, created_at DESC);
CREATE INDEX deliveries_sent_again ON deliveries (tenant_id, endpoint_id)
  WHERE next_retry_at IS NOT NULL AND (replayed_from IS NOT NULL OR event = 'webhook.test');
CREATE INDEX deliveries_age ON deliveries (created_at);

-- ---------------------------------------------------------------- row-level security and grants

DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['webhook_endpoints', 'deliveries'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY own_tenant ON %I TO custody_api, custody_signer, custody_scheduler, custody_proxy
                    USING (tenant_id = current_setting(''custody.tenant''))', t);
    EXECUTE format('CREATE POLICY across ON %I TO custody_definer USING (true)', t);
  END LOOP;
END $$;

-- ---------------------------------------------------------------- what a delivery is signed with

ALTER TABLE sealed DROP CONSTRAINT sealed_owner_kind_check;
ALTER TABLE sealed ADD CONSTRAINT sealed_owner_kind_check
  CHECK (owner_kind IN ('agent', 'token_key', 'secret', 'user', 'signing_key', 'webhook'));
ALTER TABLE sealed ADD COLUMN webhook_id uuid GENERATED ALWAYS AS (CASE WHEN owner_kind = 'webhook' THEN owner::uuid END) STORED;
ALTER TABLE sealed ADD FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhook_endpoints ON DELETE CASCADE;

CREATE FUNCTION webhook_secret(p_tenant text, p_endpoint uuid) RETURNS TABLE (enabled boolean, blob bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('custody.tenant', p_tenant, true);
  RETURN QUERY SELECT e.enabled, s.blob FROM webhook_endpoints e
    LEFT JOIN sealed s ON s.tenant_id = e.tenant_id AND s.owner_kind = 'webhook' AND s.owner = e.id::text
   WHERE e.tenant_id = p_tenant AND e.id = p_endpoint AND e.deleted_at IS NULL;
END $$;
COMMENT ON FUNCTION webhook_secret IS 'No row: no such endpoint, or it was deleted.';

-- As in 0003; new: what the signer alone says of webhooks.
CREATE OR REPLACE FUNCTION audit_append(p_actor_type text, p_actor_id text, p_action text, p_resource_type text, p_resource_id text,
                                        p_metadata text, p_origin text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  -- The writer is stamped from the session, and what only the signer may claim nobody else can write.
  IF p_action ~ ('^(tx|policy|key|agent|tenant|approval|secret|credential_route|user|session|membership|factor|passkey|device'
                 '|app_client|app_secret|signing_key|platform_key|webhook)\.') AND session_user <> 'custody_signer' THEN
    RAISE EXCEPTION 'role % may not write the audit action %', session_user, p_action;
  END IF;
  -- A person acts as `user:<id>`, whatever story it is told in. An agent may be called anything, so its name tells nothing.
  INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                     ip_address, user_agent, request_id, created_at)
  VALUES (current_setting('custody.tenant'), session_user,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN 'user' ELSE p_actor_type END,
          CASE WHEN p_actor_type <> 'agent' AND p_actor_id LIKE 'user:%' THEN substr(p_actor_id, 6) ELSE p_actor_id END,
          p_action, p_resource_type, p_resource_id, p_metadata, p_origin[2], p_origin[3], p_origin[1], service_now());
END $$;

DO $$
DECLARE f text;
BEGIN
  -- Those without a list of their own are new: everybody may call them.
  FOR f IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f' AND p.proacl IS NULL LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;

GRANT SELECT ON webhook_endpoints, deliveries TO custody_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_endpoints, deliveries TO custody_signer;
GRANT SELECT ON events TO custody_signer;
GRANT EXECUTE ON FUNCTION webhook_secret TO custody_signer;
