"""CpuThrottle of the loop for reading what callers send: rules and documents, whose largest take milliseconds each.

The signer has one loop. A caller that keeps it busy waits before its next read, so that an agent takes a
tenth of the loop's time for that, a tenant a fifth and all tenants together half. Work shorter than half a
millisecond is not counted, and a tenant whose share is not used up never waits. What is read in a thread counts as
well: it takes the interpreter from the loop, a few milliseconds at a time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from custody.worker.agent_queues import AgentQueues

AGENT_SHARE: Final = 0.1
TENANT_SHARE: Final = 0.2
SHARE_OF_ALL: Final = 0.5
FREE_SECONDS: Final = 0.0005
# So much is read at once before anybody waits.
BURST_SECONDS: Final = 0.05
# The queue of one tenant's readings; no agent can have this id.
READING: Final = "/reading"
_ALL: Final = ("", "")
_KEPT: Final = 1_000


class CpuThrottle:
    """Runs work of agents and tenants now or later, by the processor time that each has used lately."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now, self._spent, self._sleep = now, spent, sleep
        self._turns = AgentQueues()
        self._thread = ThreadPoolExecutor(1, "second-reader")
        # Until when the share of each is used up.
        self._until: dict[tuple[str, str], float] = {}

    async def run[T](self, tenant: str, agent: str, work: Callable[[], T]) -> T:
        """Do the work when its share allows it; TooManyWaiting where too many of the tenant's wait."""
        if not self.is_used_up(tenant):
            return self.run_now(tenant, agent, work)
        # Its own first: an agent that waits for itself holds up no other agent of its tenant.
        await self._wait((tenant, agent))
        async with self._turns.turn_of(tenant, READING):
            await self._wait((tenant, ""))
            await self._wait(_ALL)
            return self.run_now(tenant, agent, work)

    def run_or_count[T](self, tenant: str, agent: str, work: Callable[[], T | None]) -> T | None:
        """Do the work at once; where nothing comes of it all of it is counted, however short."""
        begun = self._spent()
        done = work()
        if done is None:
            self._charge_all(tenant, agent, self._spent() - begun)
        return done

    def is_used_up(self, tenant: str) -> bool:
        """Say whether work of this tenant might wait."""
        return self._until.get((tenant, ""), 0.0) > self._now()

    async def run_in_thread[T](self, tenant: str, agent: str, work: Callable[[], T]) -> T:
        """The same for work that may take longer than the loop may be held; one thread does all of it."""
        await self._wait((tenant, agent))
        async with self._turns.turn_of(tenant, READING):
            await self._wait((tenant, ""))
            await self._wait(_ALL)
            spent = 0.0

            def measure() -> T:
                nonlocal spent
                begun = self._spent()
                try:
                    return work()
                finally:
                    spent = self._spent() - begun

            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, measure)
            finally:
                self._count(tenant, agent, spent)

    async def _wait(self, who: tuple[str, str]) -> None:
        while (seconds := self._until.get(who, 0.0) - BURST_SECONDS - self._now()) > 0:
            await self._sleep(seconds)

    def run_now[T](self, tenant: str, agent: str, work: Callable[[], T]) -> T:
        """Do the work at once, and count it all the same."""
        begun = self._spent()
        try:
            return work()
        finally:
            self._count(tenant, agent, self._spent() - begun)

    def _count(self, tenant: str, agent: str, seconds: float) -> None:
        if seconds > FREE_SECONDS:
            self._charge_all(tenant, agent, seconds)

    def _charge_all(self, tenant: str, agent: str, seconds: float) -> None:
        self._charge((tenant, agent), seconds / AGENT_SHARE)
        self._charge((tenant, ""), seconds / TENANT_SHARE)
        self._charge(_ALL, seconds / SHARE_OF_ALL)

    def _charge(self, who: tuple[str, str], seconds: float) -> None:
        now = self._now()
        self._until[who] = max(now, self._until.get(who, now)) + seconds
        if len(self._until) > _KEPT:
            self._until = {one: until for one, until in self._until.items() if until > now}
