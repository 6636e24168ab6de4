"""The `custody` command for the people of a tenant: a client like any other, on their own machine."""
