"""A semaphore over what tenants share, such as connections to the database, of which each holds one at a time.

Tenants that one person made are one here: else twenty of theirs would hold every seat.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from custody.kit.db import Pool

# Of the connections of a process one in so many; at least one.
ONE_IN = 4
# Of one tenant or person, beside the one that has its turn.
MAX_WAITING = 8
WAIT_SECONDS = 10.0

# Says who made a tenant; None where an operator did.
Maker = Callable[[Pool, str], Awaitable[str | None]]


class TooManyOfTenant(Exception):
    """As many of this tenant, or of the person who made it, wait as may."""


class NoneFree(Exception):
    """Others held the whole share for as long as one waits."""


class TenantSemaphore:
    """Tenants take turns: one seat each, and all together so many seats, or a part of the pool's connections.

    With `made_by`, all tenants of one person have one seat together.
    """

    def __init__(
        self, wait_seconds: float = WAIT_SECONDS, *, seats: int | None = None, made_by: Maker | None = None
    ) -> None:
        self._wait_seconds = wait_seconds
        self._made_by = made_by
        self._count = seats
        self._seats: asyncio.Semaphore | None = None
        # The turn of a tenant or person, and how many hold it or wait for it.
        self._turns: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, pool: Pool, tenant: str) -> AsyncIterator[None]:
        """A time in which this tenant has a seat. Raises TooManyOfTenant, NoneFree."""
        person = None if self._made_by is None else await self._made_by(pool, tenant)
        whose = ("tenant", tenant) if person is None else ("person", person)
        async with self._turn_of(whose), self._seat(pool):
            yield

    @asynccontextmanager
    async def _turn_of(self, whose: tuple[str, str]) -> AsyncIterator[None]:
        lock, held = self._turns.get(whose, (asyncio.Lock(), 0))
        if held > MAX_WAITING:
            raise TooManyOfTenant
        self._turns[whose] = (lock, held + 1)
        try:
            async with lock:
                yield
        finally:
            lock, held = self._turns.pop(whose)
            if held > 1:
                self._turns[whose] = (lock, held - 1)

    @asynccontextmanager
    async def _seat(self, pool: Pool) -> AsyncIterator[None]:
        if self._seats is None:
            self._seats = asyncio.Semaphore(self._count or max(1, pool.get_max_size() // ONE_IN))
        try:
            # One of each tenant waits here at most, first come, first served.
            await asyncio.wait_for(self._seats.acquire(), self._wait_seconds)
        except TimeoutError:
            raise NoneFree from None
        try:
            yield
        finally:
            self._seats.release()
