"""Fixtures by name only; the rest is in `fixtures/`."""

import gc

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.fixtures.held_contract",
    "tests.fixtures.postgres",
    "tests.fixtures.server",
    "tests.fixtures.callers",
    "tests.fixtures.people",
    "tests.fixtures.tenant_rows",
    "tests.fixtures.turns",
]
# How long an example takes says something of what else the machine does, and nothing of the example.
settings.register_profile("custody", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("custody")

# Modules and collected tests are never garbage; looking for some among them took a tenth of a run.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make."""
    gc.freeze()
    gc.enable()
