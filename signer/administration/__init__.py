"""The signer's stories about a tenant's administration: clients, keys, configuration, freezing."""
