"""Access to Postgres: one pool a process, and the scope that names the tenant for row-level security.

Every tenant table refuses to answer unless `custody.tenant` is set in the transaction (promise P4). Hot statements
are SQL functions that set it themselves in one round trip; everything else runs inside `tenant_scope`.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

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
    # A former primary that takes no writes any more.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,  # for this role, or for anybody
    OSError,
    TimeoutError,
)
# A server that is gone without a word is known after some 25 seconds, by the system, whatever waits for it.
# The last is for a question under way, beside which no keepalive is sent.
_ALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3, socket.TCP_USER_TIMEOUT: 25_000}
# A commit that is told only when the replicas have it, of nothing: what was there before it, they have as well.
_ACKNOWLEDGED: Final = "SELECT pg_logical_emit_message(true, 'custody', '')"


class _Patient(asyncpg.Connection):  # type: ignore[misc] # asyncpg carries no types
    """A connection that never asks Postgres to cancel: who is called off goes, and the statement ends by itself.

    Postgres answers a cancelled wait for a replica by showing to all what no replica has (promise P9). Until the end of
    the statement the connection is in use; the role's `statement_timeout` bounds what comes before a commit.
    """

    async def _cancel(self, waiter: asyncio.Future[None], cancel_waiter: asyncio.Future[None] | None = None) -> None:
        # In place of a cancel request on a second connection; who uses this one next waits for the statement's end.
        try:
            if not waiter.done():
                waiter.set_result(None)
            if cancel_waiter is not None:
                await asyncio.shield(cancel_waiter)
        finally:
            self._cancellations.discard(asyncio.current_task())

    async def _execute(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super()._execute(*args, **kwargs)
        except asyncpg.ReadOnlySQLTransactionError:
            # Of a former primary: closed, so that the next one looks for the new primary.
            self.terminate()
            raise


async def wait_for_replicas(connection: Connection) -> None:
    """Wait until the replicas have everything that this connection can see; a stored answer leaves only after it."""
    await connection.fetchval(_ACKNOWLEDGED)


async def _nothing_to_reset(_connection: Any) -> None:
    # Safe only because nothing of ours sets session state: every setting is local to its transaction.
    return None


Opened = Callable[[Any], Awaitable[None]]


def keep_alive(connection: Any) -> None:
    """Have the system end a connection whose server is gone without a word."""
    wire = connection._transport.get_extra_info("socket")
    if wire.family != socket.AF_UNIX:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _ALIVE.items():
            wire.setsockopt(socket.IPPROTO_TCP, option, value)


async def open_pool(
    url: str, *, size: int, least: int | None = None, statement_cache: int = 256, opened: Opened | None = None
) -> Pool:
    """Open a pool of `size` connections, `least` of them at once; each is shown to `opened` before anybody has it.

    The reset round trip at each release is left out.
    """

    async def init(connection: Any) -> None:
        keep_alive(connection)
        if opened is not None:
            await opened(connection)

    pool = await asyncpg.create_pool(
        url,
        min_size=least or size,
        max_size=size,
        reset=_nothing_to_reset,
        statement_cache_size=statement_cache,
        max_inactive_connection_lifetime=0,
        timeout=5,
        # No command_timeout: it would end in a cancellation.
        connection_class=_Patient,
        init=init,
        # Buckets of an hour are cut in the session's zone; only UTC has no half hours and no summer.
        server_settings={"timezone": "UTC"},
    )
    assert pool is not None  # noqa: S101 - create_pool returns None only in a mode we do not use
    return pool


async def open_pool_when_there(
    url: str, *, size: int, least: int | None = None, seconds: float, opened: Opened | None = None
) -> Pool:
    """Open a pool, waiting for a Postgres that is still starting."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await open_pool(url, size=size, least=least, opened=opened)
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
