"""The job that seals the audit log."""
