-- Webhook endpoints and deliveries: the tables. Who writes what: endpoints the signer (each has a sealed secret), what
-- becomes of a delivery the scheduler.

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
