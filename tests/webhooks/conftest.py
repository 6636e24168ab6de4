"""Fixtures of a deployment whose events go to hostile receivers."""

from tests.fixtures.hooked import hooked, hooks, receivers

__all__ = ("hooked", "hooks", "receivers")
