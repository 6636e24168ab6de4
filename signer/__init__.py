"""The process that holds the keys. It judges, records and signs, and trusts no other process' word about who asks."""
