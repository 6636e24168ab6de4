"""Access to Postgres: one pool a process, and the scope that names the tenant for row-level security.

Every tenant table refuses to answer unless `custody.tenant` is set in the transaction (promise P4). Hot statements
are SQL functions that set it themselves in one round trip; everything else runs inside `tenant_scope`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg

from custody.kit.logs import logger

Pool: TypeAlias = asyncpg.Pool  # noqa: UP040 - asyncpg carries no types
Connection: TypeAlias = asyncpg.Connection  # noqa: UP040


log = logger(__name__)
_CLOSE_SECONDS = 3.0

# What asyncpg raises while Postgres is down, starting or shutting down.
DatabaseAway = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    # Told by a server that ends a connection, until its goodbye arrives: "another operation is in progress".
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


async def _nothing_to_reset(_connection: Any) -> None:
    # Safe only because nothing of ours sets session state: every setting is local to its transaction.
    return None


async def open_pool(url: str, *, size: int, least: int | None = None, statement_cache: int = 256) -> Pool:
    """Open a pool of `size` connections, `least` of them at once; the reset round trip at each release is left out."""
    pool = await asyncpg.create_pool(
        url,
        min_size=least or size,
        max_size=size,
        reset=_nothing_to_reset,
        statement_cache_size=statement_cache,
        max_inactive_connection_lifetime=0,
        timeout=5,
        command_timeout=30,
        # Buckets of an hour are cut in the session's zone; only UTC has no half hours and no summer.
        server_settings={"timezone": "UTC"},
    )
    assert pool is not None  # noqa: S101 - create_pool returns None only in a mode we do not use
    return pool


async def open_pool_when_there(url: str, *, size: int, least: int | None = None, seconds: float) -> Pool:
    """Open a pool, waiting for a Postgres that is still starting."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await open_pool(url, size=size, least=least)
        except DatabaseAway:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.1)


async def close_pool(pool: Pool) -> None:
    """Close a pool, and cut off what is not given back or does not answer in time: a process that stops must end."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await pool.close()
    except TimeoutError:
        # The library cut the connections when it was called off.
        log.warning("connections to the database were in use at the end and were cut")


@asynccontextmanager
async def tenant_scope(pool: Pool, tenant: str) -> AsyncIterator[Connection]:
    """A transaction in which only this tenant's rows exist."""
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
        yield connection
