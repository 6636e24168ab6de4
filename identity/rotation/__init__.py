"""Identity's part of a rotation of the master key: its rows again under its own next key."""
