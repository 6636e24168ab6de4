"""Fixtures of a deployment whose channels lead to hostile receivers, and which can mail."""

import shutil
from collections.abc import Iterator

import pytest

from ops import places
from tests.fixtures.deployments import database_apart
from tests.fixtures.hooked import Hooked, hooks, receivers
from tests.outside.hostile_receiver import HostileReceiver
from tests.outside.smtp_server import Mailbox

__all__ = ("hook_world", "hooks", "receivers")


@pytest.fixture(scope="session")
def hook_world(
    postgres_home: places.Home, worker_id: str, receivers: HostileReceiver, mailbox: Mailbox
) -> Iterator[Hooked]:
    """The deployment that the tests of messages share; no scheduler runs in it yet."""
    database = database_apart(postgres_home, f"{worker_id}_told")
    running = Hooked(database, receivers, SERVICE_SMTP_URL=mailbox.url)
    try:
        running.start("signer", "identity", "api")
        yield running
    finally:
        running.stop()
        shutil.rmtree(running.home)
