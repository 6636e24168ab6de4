"""The approvals queue: kept true, watched, and decided about."""
