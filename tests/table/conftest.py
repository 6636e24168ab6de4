"""One world for all the laws."""

from collections.abc import Iterator

import pytest

from tests.fixtures.server import Service
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.table.world import World


@pytest.fixture(scope="session")
def world(service: Service, mailbox: Mailbox, sms_gateway: SmsGateway) -> Iterator[World]:
    """Two tenants and everybody who may call."""
    made = World(service, mailbox, sms_gateway)
    yield made
    made.close()
