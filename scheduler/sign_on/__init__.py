"""The job that keeps the keys of identity providers."""
