"""The turns to search: few at once, one of each tenant, each for a bounded time.

A search may read all rows of a tenant and holds a connection meanwhile. However much one tenant searches, others read
and sign as before.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.errors import TooMany, Unavailable
from custody.kit.tenant_semaphore import NoneFree, TenantSemaphore, TooManyOfTenant

# Of one statement of a search.
STATEMENT_SECONDS = 5
# A refused caller waits this long for the refusal: refusing costs something, too.
REFUSED_SECONDS = 0.5
_BOUND = f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', true)"


class SearchingAlready(TooMany):
    """Eight searches of one person's tenants are queued; retry later, or narrow them by agentId or dateFrom."""


class SearchesBusy(Unavailable):
    """All search slots are in use by others; retry in a few seconds."""

    retry_after = 5


class SearchTooSlow(Unavailable):
    """This search took longer than five seconds; narrow it, as by agentId or dateFrom, or search by another field."""

    retry_after = 5


@asynccontextmanager
async def reading(pool: Pool, share: TenantSemaphore, tenant: str) -> AsyncIterator[Connection]:
    """A transaction to search in. Raises SearchingAlready, SearchesBusy, SearchTooSlow."""
    try:
        async with share.turn(pool, tenant), tenant_scope(pool, tenant) as connection:
            await connection.execute(_BOUND)
            yield connection
    except TooManyOfTenant:
        await asyncio.sleep(REFUSED_SECONDS)
        raise SearchingAlready from None
    except NoneFree:
        raise SearchesBusy from None
    except asyncpg.QueryCanceledError:
        raise SearchTooSlow from None
