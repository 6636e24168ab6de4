"""Three people with a key each, and an agent whose every order needs two of them."""

from collections.abc import Iterator

import pytest

from tests.fixtures.approvers import Approver, approver, quorum
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.server import Service


@pytest.fixture
def three(service: Service, tenant: Tenant) -> Iterator[list[Approver]]:
    """Three admins with a registered key each."""
    made = [approver(service, tenant) for _ in range(3)]
    yield made
    for one in made:
        one.person.close()


@pytest.fixture
def voted_agent(tenant: Tenant, three: list[Approver]) -> Agent:
    """An agent whose every order needs two of the three."""
    agent = tenant.agent()
    three[0].person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(2, *three)])
    return agent
