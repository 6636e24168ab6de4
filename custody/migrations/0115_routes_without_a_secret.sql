-- A route may let requests through and inject nothing: it has no secret.

ALTER TABLE credential_routes ALTER COLUMN secret_id DROP NOT NULL;
COMMENT ON COLUMN credential_routes.secret_id IS 'Null: nothing is injected.';
