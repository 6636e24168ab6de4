-- Orders that wait for a time, and are signed by themselves then; and recipients are found when keys are rotated.

ALTER TABLE approvals ADD COLUMN waits_since timestamptz, ADD COLUMN release_at timestamptz,
  ADD COLUMN release_look_at timestamptz,
  ADD CONSTRAINT release_is_whole CHECK ((waits_since IS NULL) = (release_at IS NULL)
                                         AND (release_look_at IS NULL OR release_at IS NOT NULL));
COMMENT ON COLUMN approvals.release_at IS 'When it is signed by itself; like waits_since under the MAC of the item.';
COMMENT ON COLUMN approvals.release_look_at IS
  'When the scheduler asks for it next; null: a person decides, as after a freeze.';
CREATE INDEX approvals_release ON approvals (release_look_at) WHERE status = 'pending' AND release_look_at IS NOT NULL;
GRANT UPDATE (release_look_at) ON approvals TO custody_definer;
GRANT SELECT ON recipients TO custody_definer;
