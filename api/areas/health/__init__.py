"""Readiness: everything that is needed to sign is there."""
