"""The number of connections each role may hold follows from the settings; nothing else changes it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from ops import connections, doctor_database, places
from ops.migrate import migrate
from ops.postgres import EmbeddedPostgres
from ops.settings import PROCESSES, load


def test_a_limit_has_room_for_every_host_and_worker_and_for_one_more_host() -> None:
    given = {
        "SERVICE_DATABASE_HOSTS": "2",
        "SERVICE_API_WORKERS": "3",
        "SERVICE_PROXY_WORKERS": "2",
        "SERVICE_API_CONNECTIONS": "10",
        "SERVICE_SIGNER_CONNECTIONS": "20",
        "SERVICE_IDENTITY_CONNECTIONS": "4",
    }

    found = load({"SERVICE_HOME": "/nonexistent", **given}).connection_limits

    assert found == {"signer": 68, "identity": 20, "api": 110, "scheduler": 32, "proxy": 32}
    assert connections.max_connections(given) == sum(found.values()) + 4
    assert connections.max_connections({}) == 100
    assert connections.POOLS.keys() == set(PROCESSES)


async def test_a_second_migration_sets_what_the_settings_say_now(open_folder: Path) -> None:
    home = places.open_home(open_folder / "home")
    server = EmbeddedPostgres(home.file("postgres"), home.file("log", "postgres.log"))
    url = await server.start()
    try:
        assert await migrate(url, home)
        first = await _limits(url)
        # Nothing else is to be done, and this is.
        assert await migrate(url, home, limits={**connections.BY_DEFAULT, "api": 77}) == []
        second = await _limits(url)
        noticed = await _keepalives(url)
    finally:
        await server.stop()

    assert first == connections.BY_DEFAULT
    assert second == {**first, "api": 77}
    assert noticed == dict.fromkeys(PROCESSES, 60)


async def test_a_limit_below_what_is_held_is_said(open_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with _server(open_folder) as (home, url):
        await migrate(url, home)
        address = home.file("db", "proxy.url").read_text().strip()
        held = [await asyncpg.connect(address) for _ in range(3)]
        await migrate(url, home, limits={**connections.BY_DEFAULT, "proxy": 3})
        enough = capsys.readouterr().err
        await migrate(url, home, limits={**connections.BY_DEFAULT, "proxy": 2})
        for connection in held:
            await connection.close()

    assert enough == ""
    assert "custody: custody_proxy holds 3 connections and may hold 2 from now on" in capsys.readouterr().err


async def test_the_cure_of_a_role_that_another_database_shares_is_one_that_helps(open_folder: Path) -> None:
    async with _server(open_folder) as (home, url):
        await migrate(url, home)
        owner, settings = await asyncpg.connect(url), load({"SERVICE_HOME": str(home.path)})
        await owner.execute("ALTER ROLE custody_api CONNECTION LIMIT -1")
        alone = await doctor_database.connections(owner, settings)
        await owner.execute("CREATE DATABASE staging")
        await owner.execute("GRANT CONNECT ON DATABASE staging TO custody_api")

        shared = await doctor_database.connections(owner, settings)
        await migrate(url, home)
        after = (await _limits(url))["api"]
        assert shared.cure is not None
        await owner.execute(shared.cure.rpartition(": ")[2])
        cured = await doctor_database.connections(owner, settings)
        await owner.close()

    assert (alone.found, alone.cure) == ("custody_api may hold all of the server's", "run `custody migrate`")
    # That would not help here.
    assert after == -1
    assert "`custody migrate` leaves that; custody_api also in use by staging: one limit for all" in shared.found
    assert cured.cure is None
    assert cured.found.endswith("; custody_api also in use by staging: one limit for all together")


@asynccontextmanager
async def _server(folder: Path) -> AsyncIterator[tuple[places.Home, str]]:
    """A server of a test's own, whose roles nobody else has."""
    home = places.open_home(folder / "home")
    server = EmbeddedPostgres(home.file("postgres"), home.file("log", "postgres.log"))
    try:
        yield home, await server.start()
    finally:
        await server.stop()


async def _limits(url: str) -> dict[str, int]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT rolname, rolconnlimit FROM pg_roles WHERE rolname = ANY ($1)",
            [f"custody_{process}" for process in PROCESSES],
        )
        return {row["rolname"].removeprefix("custody_"): row["rolconnlimit"] for row in rows}
    finally:
        await connection.close()


async def _keepalives(url: str) -> dict[str, int]:
    """The seconds after which the server gives up a silent connection of each role."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT rolname, setconfig FROM pg_db_role_setting JOIN pg_roles ON pg_roles.oid = setrole"
            " WHERE setdatabase = 0 AND rolname LIKE 'custody_%'"
        )
    finally:
        await connection.close()
    said = {row["rolname"].removeprefix("custody_"): dict(one.split("=") for one in row["setconfig"]) for row in rows}
    return {
        process: int(one["tcp_keepalives_idle"])
        + int(one["tcp_keepalives_interval"]) * int(one["tcp_keepalives_count"])
        for process, one in said.items()
        if process in PROCESSES
    }
