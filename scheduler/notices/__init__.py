"""The job that tells people what waits."""
