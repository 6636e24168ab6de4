-- Refresh tokens that change with each use: one at a time refreshes, and the next one is sealed beside the secret.

ALTER TABLE secrets ADD COLUMN refresh_lease uuid;
ALTER TABLE secrets ADD COLUMN refresh_until timestamptz;
COMMENT ON COLUMN secrets.refresh_lease IS 'Of the refresh of its access token that is under way, or that nobody ended.';
COMMENT ON COLUMN secrets.refresh_until IS 'Until then nobody else refreshes.';
