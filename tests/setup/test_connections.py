"""How many connections each role may hold follows from the settings; nothing else changes it."""

from pathlib import Path

import asyncpg

from ops import connections, places
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
    assert connections.needed(given) == sum(found.values()) + 4
    assert connections.needed({}) == 100
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
