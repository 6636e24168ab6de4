"""One world for all the laws."""

from collections.abc import Iterator

import pytest

from tests.fixtures.server import Service
from tests.outside.dns_server import DnsServer
from tests.outside.evm_node import EvmNode
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import running_oidc_server
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.table.world import SignOnWorld, World


@pytest.fixture(scope="session")
def world(
    service: Service,
    mailbox: Mailbox,
    sms_gateway: SmsGateway,
    dns_server: DnsServer,
    oauth: OAuthProviders,
    evm_node: EvmNode,
) -> Iterator[World]:
    """Two tenants and everybody who may call."""
    with running_oidc_server() as oidc:
        made = World(service, mailbox, sms_gateway, SignOnWorld(dns_server, oauth, oidc), evm_node)
        yield made
        made.close()
