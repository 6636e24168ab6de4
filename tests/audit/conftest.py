"""One deployment of this folder's own: without a scheduler, so that rows are sealed when a test says so."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ops import places
from tests.audit.sealed import Log
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import Service


@pytest.fixture(scope="session")
def checkpoint_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which the signer appends what it signed."""
    return tmp_path_factory.mktemp("outside") / "checkpoints"


@pytest.fixture(scope="session")
def apart(postgres_home: places.Home, worker_id: str, checkpoint_file: Path) -> Iterator[Service]:
    """Signer and api on a database of their own."""
    database = database_apart(postgres_home, f"{worker_id}_audit")
    with deploy(database, SERVICE_CHECKPOINT_FILE=str(checkpoint_file)) as service:
        yield service


@pytest.fixture
def log(apart: Service) -> Iterator[Log]:
    """A log of seven sealed rows or more that nobody else touches."""
    with closing(Log(apart, acts=5)) as made:
        yield made
