"""The security checklist of a tenant."""
