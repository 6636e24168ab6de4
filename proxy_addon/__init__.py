"""The proxy: agents send requests without a key, and it adds the credential that a route of their tenant names."""
