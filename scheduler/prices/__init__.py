"""The job that brings the prices that the operator's endpoint issues."""
