"""Functions of the database for the proxy, under its own role; and that it is told what changed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Tenant, rule
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import done_as_tenant

FIELDS = {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "authorization"}
AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
async def proxy(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """The proxy's own connection."""
    connection = await asyncpg.connect(database.urls["proxy"])
    yield connection
    await connection.close()


@pytest.fixture
async def notices(database: Database) -> AsyncIterator["asyncio.Queue[str]"]:
    """The tenants that the channel names, in order."""
    connection, heard = await asyncpg.connect(database.urls["proxy"]), asyncio.Queue[str]()
    await connection.add_listener("custody_changes", lambda *said: heard.put_nowait(said[3]))
    yield heard
    await connection.close()


def secret_of(service: Service, tenant: Tenant, name: str = "openai", **more: Any) -> str:
    return done_as_tenant(service, tenant.key, "CreateSecret", {"name": name, "value": "v", **more})["id"]


def route_of(service: Service, tenant: Tenant, secret: str, **fields: Any) -> str:
    body = {"secret": secret, "fields": {**FIELDS, **fields}}
    return done_as_tenant(service, tenant.key, "CreateCredentialRoute", body)["id"]


async def test_the_standing_of_an_agent_moves_with_what_its_tokens_and_routes_do(
    service: Service, tenant: Tenant, proxy: asyncpg.Connection, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent()
    fresh = await standing(proxy, tenant.id, agent.id)
    secret = secret_of(service, tenant)
    begun = await standing(proxy, tenant.id, agent.id)
    route_of(service, tenant, secret)
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")
    later = await standing(proxy, tenant.id, agent.id)
    await owner.execute("UPDATE agents SET frozen_at = now() WHERE id = $1", agent.id)
    frozen = await standing(proxy, tenant.id, agent.id)

    assert (fresh["token_epoch"], fresh["frozen"], fresh["credential_version"]) == (1, False, 0)
    assert (later["token_epoch"], later["frozen"]) == (2, False)
    assert (begun["credential_version"] > 0, later["credential_version"]) == (True, begun["credential_version"] + 1)
    assert frozen["frozen"]
    assert fresh["incarnation"] == later["incarnation"]


async def test_a_frozen_tenant_freezes_its_agents(
    tenant: Tenant, proxy: asyncpg.Connection, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent()
    await owner.execute("UPDATE tenants SET frozen_at = now() WHERE id = $1", tenant.id)

    assert (await standing(proxy, tenant.id, agent.id))["frozen"]


async def test_an_agent_of_another_tenant_has_no_standing(
    tenant: Tenant, other_tenant: Tenant, proxy: asyncpg.Connection
) -> None:
    agent = other_tenant.agent()

    assert await standing(proxy, tenant.id, agent.id) is None


async def test_routes_come_in_the_order_in_which_they_are_tried_with_what_became_of_their_secrets(
    service: Service, tenant: Tenant, other_tenant: Tenant, proxy: asyncpg.Connection, owner: asyncpg.Connection
) -> None:
    soon = clock_in(hours=1)
    live, gone = secret_of(service, tenant, "live"), secret_of(service, tenant, "gone")
    expired = secret_of(service, tenant, "expired", expires_at=soon)
    first, second = route_of(service, tenant, live, enabled=False), route_of(service, tenant, gone)
    third = route_of(service, tenant, expired)
    urgent = route_of(service, tenant, live, priority=7)
    route_of(service, other_tenant, secret_of(service, other_tenant))
    done_as_tenant(service, tenant.key, "DeleteSecret", {"secret": gone})
    done_as_tenant(service, tenant.key, "RotateSecret", {"secret": live, "value": "w", "rotate": True})
    await owner.execute("UPDATE secrets SET expires_at = now() WHERE id = $1", expired)

    rows = await proxy.fetch("SELECT * FROM proxy_routes($1)", tenant.id)

    assert [str(row["id"]) for row in rows] == [urgent, first, second, third]
    said = [(row["secret_name"], row["secret_version"], row["secret_lost"]) for row in rows]
    assert said == [("live", 2, None), ("live", 2, None), ("gone", 1, "deleted"), ("expired", 1, "expired")]
    assert '"hostPattern":"api.example.com"' in rows[0]["fields"]


async def test_rows_of_many_requests_are_appended_in_one_statement(
    tenant: Tenant, other_tenant: Tenant, proxy: asyncpg.Connection, owner: asyncpg.Connection
) -> None:
    await append(proxy, [tenant.id, other_tenant.id])

    one, other = [
        await owner.fetch("SELECT * FROM audit WHERE tenant_id = $1 AND action = 'proxy.request'", name)
        for name in (tenant.id, other_tenant.id)
    ]
    assert (len(one), len(other)) == (1, 1)
    said = {key: one[0][key] for key in ("written_by", "actor_type", "actor_id", "resource_type", "resource_id")}
    assert said == {
        "written_by": "custody_proxy",
        "actor_type": "agent",
        "actor_id": "agent-0",
        "resource_type": "upstream",
        "resource_id": "api.example.com/0",
    }
    assert (one[0]["metadata"], one[0]["user_agent"]) == ('{"n":0}', None)
    # The proxy's word on the time is not taken.
    assert one[0]["created_at"] < AT
    assert (one[0]["ip_address"], one[0]["request_id"]) == ("127.0.0.1", "request-0")


@pytest.mark.parametrize("name", ["platform", "nobody", "a\nb"])
async def test_no_row_goes_to_a_log_of_no_tenant(tenant: Tenant, proxy: asyncpg.Connection, name: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="no such tenant"):
        await append(proxy, [tenant.id, name])


@pytest.mark.parametrize("name", ["api", "scheduler", "signer"])
async def test_other_roles_cannot_call_functions_of_the_proxy(database: Database, tenant: Tenant, name: str) -> None:
    connection = await asyncpg.connect(database.urls[name])
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await append(connection, [tenant.id])
        for question in ("proxy_routes('t')", "proxy_standing('t', 'a')"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT * FROM {question}")
    finally:
        await connection.close()


@pytest.mark.parametrize("name", ["api", "scheduler", "proxy"])
async def test_other_roles_can_neither_change_nor_reveal_secrets(database: Database, name: str) -> None:
    connection = await asyncpg.connect(database.urls[name])
    nobody = "'00000000-0000-4000-8000-000000000000'::uuid"
    try:
        for call in (
            f"reveal_read('t', 'a', {nobody})",
            f"secret_read('t', {nobody})",
            f"credential_route_read('t', {nobody})",
            "begin_credential_change('t', NULL)",
            f"delete_credential_route('t', NULL, NULL, {nobody})",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"SELECT * FROM {call}")
    finally:
        await connection.close()


CHANGES = {
    "agent frozen": "UPDATE agents SET frozen_at = now() WHERE tenant_id = $1",
    "recreated agent": "UPDATE agents SET incarnation = gen_random_uuid() WHERE tenant_id = $1",
    "tenant frozen": "UPDATE tenants SET frozen_at = now() WHERE id = $1",
    "agents deleted": "DELETE FROM agents WHERE tenant_id = $1",
    "tenant deleted": "DELETE FROM tenants WHERE id = $1",
    "head lost": "DELETE FROM credential_heads WHERE tenant_id = $1",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_ends_a_standing_is_told_at_once(
    service: Service, tenant: Tenant, owner: asyncpg.Connection, notices: "asyncio.Queue[str]", change: str
) -> None:
    tenant.agent()
    secret_of(service, tenant)
    await until_told(notices, tenant.id)

    await owner.execute(CHANGES[change], tenant.id)

    assert (await until_told(notices, tenant.id))[-1] == tenant.id


async def test_every_change_of_a_secret_or_route_is_told(
    service: Service, tenant: Tenant, notices: "asyncio.Queue[str]"
) -> None:
    secret = secret_of(service, tenant)
    await until_told(notices, tenant.id)
    route = route_of(service, tenant, secret)
    await until_told(notices, tenant.id)

    for name, body in (
        ("RotateSecret", {"secret": secret, "value": "w", "rotate": False}),
        ("ChangeCredentialRoute", {"route": route, "changes": {"priority": 1}}),
        ("DeleteSecret", {"secret": secret}),
        ("DeleteCredentialRoute", {"route": route}),
    ):
        done_as_tenant(service, tenant.key, name, body)
        assert (await until_told(notices, tenant.id))[-1] == tenant.id


async def test_signing_tells_nobody(
    service: Service, tenant: Tenant, other_tenant: Tenant, notices: "asyncio.Queue[str]"
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100"))

    assert agent.sign().status_code == 200
    secret_of(service, other_tenant)

    assert tenant.id not in await until_told(notices, other_tenant.id)


def clock_in(**later: int) -> str:
    return (datetime.now(UTC) + timedelta(**later)).isoformat()


async def standing(proxy: asyncpg.Connection, tenant: str, agent: str) -> Any:
    return await proxy.fetchrow("SELECT * FROM proxy_standing($1, $2)", tenant, agent)


async def append(connection: asyncpg.Connection, tenants: list[str]) -> None:
    count = range(len(tenants))
    await connection.execute(
        "SELECT proxy_audit($1, $2, $3, $4, $5, $6, $7, $8)",
        tenants,
        [f"agent-{n}" for n in count],
        [f"api.example.com/{n}" for n in count],
        [f'{{"n":{n}}}' for n in count],
        [f"request-{n}" for n in count],
        ["127.0.0.1" for _ in count],
        [None for _ in count],
        [AT for _ in count],
    )


async def until_told(heard: "asyncio.Queue[str]", tenant: str) -> list[str]:
    """Everything the channel names until it names this tenant, which it must in a bounded time."""
    names: list[str] = []
    async with asyncio.timeout(60):
        while tenant not in names:
            names.append(await heard.get())
    return names
