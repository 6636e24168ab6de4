"""Counting what requests with an `Idempotency-Key` came to: in memory, and into the database once a second.

Figures, never part of an act: what a process that dies had not yet written is lost, and nothing waits for it.
"""

import asyncio
from collections import Counter as Tally
from typing import Any, Literal

from custody.idempotency import store
from custody.kit.db import Pool

Counter = Literal[
    "observed",
    "reserved",
    "completed",
    "replayed",
    "conflicts",
    "in_flight_conflicts",
    "suppressed_auth_responses",
    "invalid_keys",
    "store_errors",
    "skipped_unsafe_context",
    "released_on_error",
]
# Of how many tenants figures are kept between two flushes; what more of them do in that second goes uncounted.
_MOST_TENANTS = 10_000


class Counts:
    """The counts of this process that are not yet written."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tally[str]] = {}
        self._flushing = asyncio.Lock()

    def add(self, tenant: str, counter: Counter, n: int = 1) -> None:
        """Count something of a tenant."""
        found = self._tenants.get(tenant)
        if found is None:
            if len(self._tenants) >= _MOST_TENANTS:
                return
            found = self._tenants[tenant] = Tally()
        found[counter] += n

    async def flush(self, pool: Pool) -> None:
        """Add everything to the database, in one statement; what could not be written is kept for the next time.

        A caller that arrives during a write waits for it: earlier counts are then in the database.
        """
        async with self._flushing:
            await self._flush(pool)

    async def _flush(self, pool: Pool) -> None:
        taken, self._tenants = self._tenants, {}
        if not taken:
            return
        rows = [{"tenant": tenant, **found} for tenant, found in taken.items()]
        try:
            await store.add(pool, rows)
        except BaseException:
            self._take_back(taken)
            raise

    def _take_back(self, taken: dict[str, Tally[Any]]) -> None:
        for tenant, found in taken.items():
            for counter, n in found.items():
                self.add(tenant, counter, n)
