"""Fixtures by name only; the rest is in `fixtures/`."""

pytest_plugins = ["tests.fixtures.postgres", "tests.fixtures.server", "tests.fixtures.callers", "tests.fixtures.people"]
