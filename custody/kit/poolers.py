"""The pooler before Postgres, if any, and whether it keeps the statements that we prepare for each connection.

A pooler in transaction mode gives every transaction another connection of the server. One that does not prepare our
statements there too makes requests fail at random, so no process starts behind it.
"""

import enum

import asyncpg

from custody.kit import ids

_TRIES, _SECONDS = 5, 5.0
_WHERE = "SELECT pg_backend_pid()"
CURE = "set max_prepared_statements = 500 in PgBouncer 1.21 or newer, use its session mode, or connect without it"
# What stands between a process and Postgres.
Pooler = enum.Enum("Pooler", ("NONE", "SESSION", "TRANSACTION", "FORGETFUL"))


class ForgetfulPooler(RuntimeError):
    """The pooler before Postgres loses prepared statements, so this process cannot work behind it."""


async def refuse_forgetful(url: str) -> None:
    """Raise ForgetfulPooler if requests would fail behind what stands there. Every process starts with it."""
    if await find_pooler(url) is Pooler.FORGETFUL:
        raise ForgetfulPooler(f"the pooler before Postgres forgets prepared statements between transactions: {CURE}")


async def find_pooler(url: str) -> Pooler:
    """Look: with one connection where Postgres itself answers, and with two behind a pooler."""
    first = await _connect(url)
    try:
        async with first.transaction():
            # A pooler makes up the number with which a client may cancel; Postgres gives its own process'.
            if await first.fetchval(_WHERE) == first.get_server_pid():
                return Pooler.NONE
        second = await _connect(url)
        try:
            return await _between(first, second)
        finally:
            await second.close(timeout=_SECONDS)
    finally:
        await first.close(timeout=_SECONDS)


async def _connect(url: str) -> asyncpg.Connection:
    # Without its cache the library prepares nothing under a name but what is named below.
    return await asyncpg.connect(url, timeout=_SECONDS, command_timeout=_SECONDS, statement_cache_size=0)


async def _between(first: asyncpg.Connection, second: asyncpg.Connection) -> Pooler:
    try:
        # A name of its own: one from an earlier look may still be known to some connection.
        prepared = await first.prepare(_WHERE, name=f"custody_{ids.new_uuid()}")
        seen = {await prepared.fetchval()}
        for _ in range(_TRIES):
            # The second takes the connection that the first has just given back, if the pooler takes it back at all.
            async with second.transaction():
                seen.add(await prepared.fetchval())
            if len(seen) > 1:
                return Pooler.TRANSACTION
    except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError):
        return Pooler.FORGETFUL
    return Pooler.SESSION
