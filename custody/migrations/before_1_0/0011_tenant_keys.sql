-- A tenant's API keys can be listed, made, rolled and revoked: each gets an id, and may have a name and an end.

ALTER TABLE tenant_keys
  ADD COLUMN id           uuid NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN name         text,
  ADD COLUMN retires_at   timestamptz,
  ADD COLUMN last_used_at timestamptz,
  ADD UNIQUE (tenant_id, id);
COMMENT ON COLUMN tenant_keys.retires_at IS 'Null: active. Set when a newer one supersedes it: it serves until then.';
COMMENT ON COLUMN tenant_keys.last_used_at IS 'At most a minute behind; noted when identity is asked about the key.';
CREATE INDEX tenant_keys_ended ON tenant_keys (LEAST(revoked_at, retires_at));

-- Listed for ninety days, so that a person finds out why a program was refused. The newest stays: by their keys and
-- configurations the signer finds the tenants whose rows it verifies.
INSERT INTO retention (what, relation, old) VALUES
  ('ended tenant keys', 'tenant_keys', $$LEAST(r.revoked_at, r.retires_at) < $1 - interval '90 days' AND EXISTS (
     SELECT FROM tenant_keys k WHERE k.tenant_id = r.tenant_id AND (k.created_at, k.id) > (r.created_at, r.id))$$);
GRANT DELETE ON tenant_keys TO custody_definer;
-- To lock a row before it goes takes the right to change some column of it; no function does.
GRANT UPDATE (created_at) ON tenant_keys TO custody_definer;
