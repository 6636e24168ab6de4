"""The audit trail: searched, exported, sealed into a log that can be checked offline. docs/audit.md."""
