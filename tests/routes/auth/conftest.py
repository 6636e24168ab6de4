"""People with a passkey, and people who have not signed in yet."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator


@pytest.fixture
def device(service: Service) -> Authenticator:
    """A device of this test's person, with the deployment's page open."""
    return Authenticator(f"http://localhost:{service.port}")


@pytest.fixture
def fresh(service: Service) -> Iterator[Person]:
    """A browser in which nobody is signed in."""
    with closing(Person(base_url=service.url, timeout=30)) as nobody:
        yield nobody
