"""Accounts: wallets of agents under one name, with what they hold."""
