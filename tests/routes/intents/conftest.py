"""Fixtures of the tests of intents."""

from tests.routes.intents.makers import other_admin

__all__ = ["other_admin"]
