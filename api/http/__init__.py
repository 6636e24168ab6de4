"""The machinery of a request: it knows callers and routes, not wallets."""
