-- Signers that authorise only for a time.

ALTER TABLE signers ADD COLUMN not_before timestamptz, ADD COLUMN expires_at timestamptz;
COMMENT ON COLUMN signers.not_before IS 'From when on it authorises; null: at once. In the sealed set.';
COMMENT ON COLUMN signers.expires_at IS 'From when on it authorises nothing any more; null: never. In the sealed set.';
