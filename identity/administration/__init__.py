"""Administration of a tenant: app clients, keys, configuration, webhooks."""
