"""Fixtures by name only; the rest is in `fixtures/`."""

import gc
import os
import signal
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

from custody.chains import built_in, families

pytest_plugins = [
    "tests.fixtures.held_contract",
    "tests.fixtures.postgres",
    "tests.fixtures.server",
    "tests.fixtures.callers",
    "tests.fixtures.people",
    "tests.fixtures.tenant_rows",
    "tests.fixtures.proxied",
    "tests.fixtures.turns",
    "tests.fixtures.forks",
]
# As every process does when it begins.
families.hand_in(built_in.LISTED)
# How long an example takes says something of what else the machine does, and nothing of the example; how many are
# drawn in vain is chance, and failed one run of many where nothing was wrong.
_CHANCE = [HealthCheck.too_slow, HealthCheck.filter_too_much]
settings.register_profile("custody", deadline=None, suppress_health_check=_CHANCE)
settings.load_profile("custody")

# An interpreter's own. py-evm sets it to 100,000 for all, with which what recurses without an end would pass here.
_RECURSION_LIMIT = sys.getrecursionlimit()
# Modules and collected tests are never garbage; looking for some among them took a tenth of a run.
gc.disable()


# A run that a shell began in the background ignores what Control-C sends, and so would every command that a test starts
# and then interrupts: it would wait for the end of one that never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


# `tmp_path` leads through it: a socket there fails on every machine, not only on one whose folders have a digit more.
# Sockets have short folders of their own.
_TOO_LONG_FOR_SOCKETS = Path(tempfile.gettempdir()) / ("tests-whose-folders-are-too-long-for-a-socket" + "-" * 64)
_TOO_LONG_FOR_SOCKETS.mkdir(exist_ok=True)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_TOO_LONG_FOR_SOCKETS))
# Nobody looks into a keyring of this machine; nor into one of the tests' own, which the library would find by itself
# once its module is imported, so that a session was kept in it which a command then looked for in a file.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make, and recurse no deeper than our processes can."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    gc.freeze()
    gc.enable()
