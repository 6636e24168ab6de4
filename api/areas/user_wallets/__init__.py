"""Wallets of people: agents in their own tenants, which nobody else may make."""
