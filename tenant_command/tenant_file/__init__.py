"""The whole tenant as a file: reading it, comparing it with the service, and making the one like the other."""
