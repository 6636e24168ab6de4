"""The job that broadcasts again what no node took."""
