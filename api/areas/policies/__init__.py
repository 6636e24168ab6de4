"""Policies: the rules an order must satisfy, and the verdict over it."""
