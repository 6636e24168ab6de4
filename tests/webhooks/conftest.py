"""Fixtures of a deployment whose events go to hostile receivers."""

from tests.fixtures.hooked import hook_world, hooks, receivers

__all__ = ("hook_world", "hooks", "receivers")
