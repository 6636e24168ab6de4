"""Fixtures by name only; the rest is in `fixtures/`."""

import gc
import os
import tempfile
from pathlib import Path

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


# `tmp_path` leads through it: a socket there fails on every machine, not only on one whose folders have a digit more.
# Sockets have short folders of their own.
_TOO_LONG_FOR_SOCKETS = Path(tempfile.gettempdir()) / ("tests-whose-folders-are-too-long-for-a-socket" + "-" * 64)
_TOO_LONG_FOR_SOCKETS.mkdir(exist_ok=True)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_TOO_LONG_FOR_SOCKETS))


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make."""
    gc.freeze()
    gc.enable()
