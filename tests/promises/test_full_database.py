"""A drill: an attacker with a process' database role opens all connections that it gets; the others go on."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from ops import connections, doctor_database
from ops.findings import Finding
from ops.migrate import migrate
from ops.settings import PROCESSES, load
from tests.fixtures.callers import Agent, new_tenant
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.server import Service


@pytest.fixture(scope="module")
def server() -> Iterator[KillablePostgres]:
    """A server for one set of processes, with the limits of production."""
    with killable_postgres(hosts=1) as started:
        yield started


@pytest.fixture
async def postgres(server: KillablePostgres) -> AsyncIterator[KillablePostgres]:
    """The same with nobody on it; afterwards it has its limits again, whatever the test did to them."""
    await _without_callers(server)
    yield server
    assert await migrate(server.owner_url, server.home) == []


@pytest.fixture
def service(postgres: KillablePostgres) -> Iterator[Service]:
    """Every process, on it."""
    with deploy(postgres.database, *PROCESSES) as running:
        yield running


async def test_a_taken_role_leaves_the_others_their_connections(postgres: KillablePostgres, service: Service) -> None:
    with new_tenant(service) as tenant:
        agent = tenant.agent()
        held = await _connections_held(postgres)
        # Of each the whole pool; one of these two listens besides. The scheduler opens its own when it needs them.
        assert {name: held[name] for name in ("signer", "identity", "api", "proxy")} == {
            **{name: connections.POOLS[name][1] for name in ("signer", "identity")},
            **{name: connections.POOLS[name][1] + 1 for name in ("api", "proxy")},
        }
        await soon(lambda: _tells_who_is_connected(postgres))

        async with _as_many_as_it_gets(postgres.database.urls["proxy"]) as (opened, why):
            assert (opened + held["proxy"], why) == (12, 'too many connections for role "custody_proxy"')
            found, cure = await _finding(postgres)
            assert found == "none is left for custody_proxy (12)"
            assert str(cure).endswith("docs/database.md")
            # One that starts needs all of its own.
            _signs_after_a_restart(service, agent)

        async with owner_of(postgres.database) as owner:
            await owner.execute("ALTER ROLE custody_proxy CONNECTION LIMIT -1")
        assert await _finding(postgres) == ("custody_proxy may hold all of the server's", "run `custody migrate`")
        async with _as_many_as_it_gets(postgres.database.urls["proxy"]) as (opened, why):
            assert opened > 40
            assert "custody_proxy" not in why
            # The control: without its limit the server is full, for everybody.
            async with _as_many_as_it_gets(postgres.database.urls["proxy"], postgres.database.urls["api"]) as (_, last):
                assert "custody_api" not in last
        # The fault is mended as the doctor says.
        assert await migrate(postgres.owner_url, postgres.home) == []
        await soon(lambda: _finding(postgres), lambda finding: finding[1] is None)


async def test_all_roles_at_their_limits_leave_the_owner_a_connection(postgres: KillablePostgres) -> None:
    urls = postgres.database.urls
    async with (
        _as_many_as_it_gets(urls["signer"]) as signer,
        _as_many_as_it_gets(urls["identity"]) as identity,
        _as_many_as_it_gets(urls["api"]) as api,
        _as_many_as_it_gets(urls["scheduler"]) as scheduler,
        _as_many_as_it_gets(urls["proxy"]) as proxy,
    ):
        opened = [count for count, _ in (signer, identity, api, scheduler, proxy)]
        assert opened == [connections.BY_DEFAULT[name] for name in PROCESSES]
        async with owner_of(postgres.database) as owner:
            assert await owner.fetchval("SELECT 1") == 1


async def test_a_limit_too_small_or_a_server_too_small_is_found(postgres: KillablePostgres) -> None:
    hosts = await _finding(postgres, SERVICE_DATABASE_HOSTS="2")
    async with owner_of(postgres.database) as owner:
        await owner.execute("ALTER ROLE custody_api CONNECTION LIMIT 40")
    together = await _finding(postgres)
    # The others may come after this one.
    assert await migrate(postgres.owner_url, postgres.home) == []

    assert hosts[0].startswith("custody_api, custody_identity, ")
    assert hosts[0].endswith("may hold fewer than their processes open")
    assert together[0] == "the roles may hold 114 together, and the server has 97"
    assert "max_connections of the server to 124" in str(together[1])


def _signs_after_a_restart(service: Service, agent: Agent) -> None:
    service.kill("api")
    service.start("api")
    assert agent.sign().status_code == 200


async def _finding(postgres: KillablePostgres, **environment: str) -> tuple[str, str | None]:
    settings = load({"SERVICE_HOME": "/nonexistent", **environment})
    async with owner_of(postgres.database) as owner:
        finding: Finding = await doctor_database.connections(owner, settings)
    assert finding.subject == "connections"
    return finding.found, finding.cure


async def _tells_who_is_connected(postgres: KillablePostgres) -> bool:
    """True if the doctor counts all who are connected; the scheduler comes and goes between two looks."""
    held = await _connections_held(postgres)
    return await _finding(postgres) == (f"{sum(held.values())} of at most 96; the server has 97", None)


async def _connections_held(postgres: KillablePostgres) -> dict[str, int]:
    async with owner_of(postgres.database) as owner:
        rows = await owner.fetch(
            "SELECT usename, count(*) FROM pg_stat_activity WHERE usename LIKE 'custody%' AND usename <> current_user"
            " GROUP BY 1"
        )
    return {row["usename"].removeprefix("custody_"): row["count"] for row in rows}


async def _without_callers(postgres: KillablePostgres) -> None:
    """Wait until nobody is connected: Postgres ends a connection a moment after its client closed it."""
    await soon(lambda: _connections_held(postgres), {})


@asynccontextmanager
async def _as_many_as_it_gets(url: str, *others: str) -> AsyncIterator[tuple[int, str]]:
    """Connections until each of these roles is refused in turn: how many, and what Postgres said to the last."""
    opened: list[asyncpg.Connection] = []
    said: list[str] = []
    urls = (url, *others)
    try:
        while len(said) < len(urls):
            try:
                opened.append(await asyncpg.connect(urls[len(said)]))
            except asyncpg.TooManyConnectionsError as refused:
                said.append(str(refused))
            else:
                # Somebody left, so the server was not full for good.
                said.clear()
        yield len(opened), said[-1]
    finally:
        for connection in opened:
            await connection.close()
