"""Every operation with what is another tenant's, by everybody whom that tenant does not know. Promise P4.

Generated from the contract: a new route is tried without anybody thinking of it. Nobody may be answered with anything
of the tenant's, and not a row of it may change.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import asyncpg
import httpx
import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import Agent, Client, Tenant, new_tenant
from tests.fixtures.people import member
from tests.fixtures.tenant_rows import Rows
from tests.table.world import World

pytestmark = pytest.mark.long

CLOSED = [endpoint for endpoint in endpoints() if "public" not in endpoint.who.kinds]
ROLES = ("owner", "admin", "developer", "billing", "viewer", "member")


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


@pytest.fixture(scope="module")
def intruders(world: World) -> Iterator[dict[str, httpx.Client]]:
    """Callers of another tenant: keys, agents, every role, an integration, and one agent of the same name."""
    with ExitStack() as stack:
        twin: Tenant = stack.enter_context(new_tenant(world.service))
        namesake: Agent = twin.agent(agent_id=world.agent.id)
        people = {role: member(world.service, world.other, role, mfa=True) for role in ROLES}
        integration = app_client_of(people["owner"])
        for client in (*people.values(), integration):
            stack.callback(client.close)
        yield {
            "tenant key": world.other,
            "agent": world.foreign,
            "agent of the same name": namesake,
            "app client": integration,
            "a person of no tenant": world.stranger,
            **people,
        }


@pytest.mark.parametrize("endpoint", CLOSED, ids=name)
async def test_callers_of_another_tenant_read_and_change_nothing(
    world: World, intruders: dict[str, Client], owner: asyncpg.Connection, rows: Rows, endpoint: Endpoint
) -> None:
    call = world.call(endpoint)
    secrets = (world.tenant.id, world.agent.evm_address, world.agent.solana_address, world.cautious.evm_address)
    before = await rows.of(world.tenant.id)

    answers = {
        who: call.send(client, headers={"X-Request-Id": f"intruder-{number}"})
        for number, (who, client) in enumerate(intruders.items())
        if who != "owner" or not endpoint.path.startswith("/auth/")
    }

    faults = {who: answer.status_code for who, answer in answers.items() if answer.status_code >= 500}
    # Of an agent of the same name the path names the intruder's own.
    let_in = {
        who: answer.status_code
        for who, answer in answers.items()
        if answer.is_success and endpoint.path_names and who != "agent of the same name"
    }
    told = [who for who, answer in answers.items() if answer.is_success and any(s in answer.text for s in secrets)]
    audited = await owner.fetchval(
        "SELECT count(*) FROM audit WHERE tenant_id = $1 AND request_id LIKE 'intruder-%'", world.tenant.id
    )
    assert (faults, let_in, told, audited) == ({}, {}, [], 0)
    assert await rows.of(world.tenant.id) == before


async def test_the_digests_would_show_a_change(world: World, rows: Rows) -> None:
    before = await rows.of(world.tenant.id)
    world.tenant.agent()

    after = await rows.of(world.tenant.id)
    changed = {table for table, digest in after.items() if digest != before[table]}

    assert {"agents", "sealed"} <= changed
