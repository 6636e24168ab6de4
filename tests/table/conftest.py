"""One world for all the laws."""

from collections.abc import Iterator

import pytest

from tests.fixtures.server import Service
from tests.table.world import World


@pytest.fixture(scope="session")
def world(service: Service) -> Iterator[World]:
    """Two tenants and everybody who may call."""
    made = World(service)
    yield made
    made.close()
