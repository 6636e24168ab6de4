"""Fixtures of these tests alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk, admin, careful, careful_desk, desk
from tests.outside import odd_api
from tests.outside.odd_api import OddApi

__all__ = ["admin", "careful", "careful_desk", "desk"]


@pytest.fixture
def owner_desk(service: Service, as_owner: Person, tmp_path: Path) -> Desk:
    """The owner of this test's tenant at their desk, with a second factor shown just now."""
    made = Desk(tmp_path, service.url)
    made.take_session(as_owner)
    return made


@pytest.fixture
async def odd(service: Service) -> AsyncIterator[OddApi]:
    """A wire to the service that misbehaves when asked to."""
    async with odd_api.odd_api(service.url) as api:
        yield api


@pytest.fixture
def odd_desk(desk: Desk, odd: OddApi) -> Desk:
    """Somebody who has the key of this test's tenant, and reaches the service by that wire."""
    desk.url = desk.environment["SERVICE_URL"] = odd.url
    return desk
