"""Fixtures of a deployment whose events go to receivers from hell."""

from tests.fixtures.hooked import hell, hooked, hooks

__all__ = ("hell", "hooked", "hooks")
