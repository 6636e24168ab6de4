"""Wallet holders of a tenant."""
