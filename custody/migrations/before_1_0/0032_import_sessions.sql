-- What 0021 was given after some databases had it: of a database that was made in between, the definer cannot lock a
-- session that goes, and nothing finds the old ones. Nothing changes elsewhere.

GRANT UPDATE (expires_at) ON import_sessions TO custody_definer;
CREATE INDEX IF NOT EXISTS import_sessions_age ON import_sessions (expires_at);
