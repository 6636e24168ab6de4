"""One order of an agent at a time, queued before a database connection is taken.

Without this one hot agent takes every connection while its orders wait for each other's row lock, and all
other agents starve.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MAX_WAITING = 256
# The queue of a tenant's secrets and credential routes; no agent can have this id.
CREDENTIALS = "/credentials"
# The queue of a tenant's policy sets; nor this one.
POLICY_SETS = "/policy-sets"
# In front of an agent's id: the queue of questions about orders, which no order waits in.
SIMULATED = "/simulated/"


class TooManyWaiting(Exception):
    """So many orders of this agent wait that another one would not be answered in time."""


class AgentQueues:
    """A queue per agent that exists while somebody is in it."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], tuple[asyncio.Lock, list[int]]] = {}

    @asynccontextmanager
    async def turn_of(self, tenant: str, agent: str) -> AsyncIterator[None]:
        """Wait for this agent's turn; TooManyWaiting beyond 256 waiters."""
        lock, present = self._queues.setdefault((tenant, agent), (asyncio.Lock(), [0]))
        if present[0] > MAX_WAITING:
            raise TooManyWaiting
        present[0] += 1
        try:
            async with lock:
                yield
        finally:
            present[0] -= 1
            if present[0] == 0:
                del self._queues[(tenant, agent)]
