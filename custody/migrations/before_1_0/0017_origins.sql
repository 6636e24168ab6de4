-- Web pages of tenants: which app clients list an origin, and at which app client's page a session began.

CREATE INDEX app_clients_origins ON app_clients USING gin ((document::jsonb -> 'allowedOrigins')) WHERE enabled;

ALTER TABLE sessions ADD COLUMN client_id text;
COMMENT ON COLUMN sessions.client_id IS
  'The app client of its tenant at whose page it began, under the MAC. It lives as long as that is enabled.';
ALTER TABLE sessions ADD COLUMN origin text;
COMMENT ON COLUMN sessions.origin IS 'That page''s origin, under the MAC.';
