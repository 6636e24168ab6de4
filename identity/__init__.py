"""The worker of people: checks who somebody is, mints sessions, and keeps what tenants are administered by."""
