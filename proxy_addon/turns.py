"""Share the event loop's time: between tenants first, then between a tenant's agents, then between their connections.

What a connection has to do at one go is small (the parsers see to that) and runs at once while the loop is idle.
As soon as one turn of the loop has worked for MAX_TURN_SECONDS, what comes then waits in line. A tenant with a thousand
connections has one place in that line, as has a tenant with one.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

# The loop looks at its sockets and timers at least this often, but for the end of the go that is running.
MAX_TURN_SECONDS: Final = 0.001
# Tenant and agent; before a token was shown an empty tenant and the address that the connection comes from.
Payer = tuple[str, str]
Work = Callable[[], None]


class Turns:
    """The fair queue of one event loop: tenants take turns, then the agents of each."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        # By tenant, then by agent, each in the order of their turns; nobody stands here who has nothing to do.
        self._line: dict[str, dict[str, deque[tuple[Work, asyncio.Future[None]]]]] = {}
        self._spent = 0.0
        self._scheduled = False

    async def do(self, payer: Payer, work: Work) -> None:
        """Have the work done, at once or when it is the payer's turn. It must be short and must not raise."""
        if not self._line and self._spent < MAX_TURN_SECONDS:
            self._run(work)
            return
        done = asyncio.get_running_loop().create_future()
        tenant, agent = payer
        self._line.setdefault(tenant, {}).setdefault(agent, deque()).append((work, done))
        self._schedule()
        await done

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._scheduled = False
        self._spent = 0.0
        while self._line and self._spent < MAX_TURN_SECONDS:
            self._one_agent()
        if self._line:
            self._schedule()

    def _one_agent(self) -> None:
        """Give the first agent in line its share of this turn, and put it and its tenant at the end."""
        tenant, agents = next(iter(self._line.items()))
        agent, works = next(iter(agents.items()))
        ends = self._spent + MAX_TURN_SECONDS
        while works and self._spent < ends:
            work, done = works.popleft()
            # Its connection may have ended meanwhile, or by this very work.
            if not done.done():
                self._run(work)
            if not done.done():
                done.set_result(None)
        del agents[agent]
        if works:
            agents[agent] = works
        del self._line[tenant]
        if agents:
            self._line[tenant] = agents

    def _run(self, work: Work) -> None:
        began = self._clock()
        work()
        self._spent += self._clock() - began
        self._schedule()
