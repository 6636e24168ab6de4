-- The operator freezes a tenant beside its people: each ends only their own freeze. A webhook's former secrets go on
-- signing until they end.

ALTER TABLE tenants
  ADD COLUMN tenant_frozen_at       timestamptz,
  ADD COLUMN tenant_frozen_reason   text,
  ADD COLUMN operator_frozen_at     timestamptz,
  ADD COLUMN operator_frozen_reason text;
UPDATE tenants SET tenant_frozen_at = frozen_at, tenant_frozen_reason = frozen_reason WHERE frozen_at IS NOT NULL;
-- Everything that signs or lets out looks at frozen_at alone; so nobody who froze can be forgotten there.
ALTER TABLE tenants ADD CONSTRAINT tenants_frozen CHECK (
  frozen_at IS NOT NULL OR (tenant_frozen_at IS NULL AND operator_frozen_at IS NULL));
COMMENT ON COLUMN tenants.frozen_at IS 'The first freeze that holds, the operator''s or the tenant''s own.';
GRANT UPDATE (tenant_frozen_at, tenant_frozen_reason, operator_frozen_at, operator_frozen_reason) ON tenants
  TO custody_signer;

ALTER TABLE identity_sealed ADD COLUMN ends_at timestamptz;
COMMENT ON COLUMN identity_sealed.ends_at IS 'Of a former secret of a webhook: until then it signs beside the newest.';
CREATE INDEX identity_sealed_ends ON identity_sealed (ends_at) WHERE ends_at IS NOT NULL;
INSERT INTO retention (what, relation, old) VALUES
  ('former secrets of webhooks', 'identity_sealed', $$r.ends_at < $1$$);
