"""Policies: the rules an order must satisfy, and the verdict over it. Spec 1/2.4, decisions 3."""
