"""A pool says of a database that goes away always that it is away, never something that nobody waits for."""

import asyncpg
import pytest

from custody.kit import db
from tests.fixtures.postgres import Database
from tests.outside.silent_wire import silent_wire


async def test_a_connection_that_was_ended_but_not_yet_closed_counts_as_away(
    database: Database, owner: asyncpg.Connection
) -> None:
    async with silent_wire(database.urls["proxy"]) as (wire, url):
        pool = await db.open_pool(url, size=1)
        pid = await pool.fetchval("SELECT pg_backend_pid()")

        await owner.execute("SELECT pg_terminate_backend($1)", pid)
        await wire.hung_up.wait()
        with pytest.raises(db.DatabaseAway) as problem:
            await pool.fetchval("SELECT 1", timeout=1)
        pool.terminate()

    # The driver has read the server's last word and waits for the connection to close.
    assert problem.type is asyncpg.InternalClientError
