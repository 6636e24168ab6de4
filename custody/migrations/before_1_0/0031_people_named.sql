-- What people call an agent, beside its name; and the list of all people, newest first.

ALTER TABLE agents ADD COLUMN display_name text CHECK (length(display_name) <= 200);
COMMENT ON COLUMN agents.display_name IS 'Shown, and judged by nobody.';
CREATE INDEX users_newest ON users (created_at DESC, id);
