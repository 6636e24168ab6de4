"""Stored credentials of a tenant, and the routes that say where each may go."""
