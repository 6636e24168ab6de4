"""Refusals of agents that do not stop: a few of a minute are told one by one, all others as a number.

What is refused costs an agent nothing, so it could otherwise write rows without end, and each is sealed and kept.
"""

import time
from collections.abc import Callable
from datetime import datetime

import msgspec

from custody.kit import clock
from proxy_addon.exchange import Exchange
from proxy_addon.peer import Agent
from proxy_addon.rate import Windows

WINDOW_SECONDS = 60
MAX_TOLD_OF_AGENT, MAX_TOLD_OF_TENANT = 100, 1000


class Number(msgspec.Struct):
    """Refusals of one agent for one reason that have no rows of their own."""

    agent: Agent
    code: str
    status: int
    address: str
    since: datetime
    begun: float
    count: int = 0


class Refusals:
    """The refusals of this minute."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._of_agent = Windows(MAX_TOLD_OF_AGENT, WINDOW_SECONDS, seconds)
        self._of_tenant = Windows(MAX_TOLD_OF_TENANT, WINDOW_SECONDS, seconds)
        self._numbers: dict[tuple[Agent, str], Number] = {}

    def told_alone(self, exchange: Exchange) -> bool:
        """Count what has ended; whether it gets a row of its own, as all do that may have been sent on."""
        if exchange.claims is None or exchange.refusal is None or exchange.ticket is not None:
            return True
        agent = exchange.claims.tid, exchange.claims.sub
        if self._of_agent.hit(agent) is None and self._of_tenant.hit((agent[0], "")) is None:
            return True
        self._count(agent, exchange)
        return False

    def many(self, agent: Agent) -> bool:
        """Say whether an agent was refused more often than is told one by one."""
        return self._of_agent.used_up(agent)

    def due(self, *, all_of_them: bool = False) -> list[Number]:
        """The numbers of a minute that has passed. They are the caller's from then on."""
        before = self._seconds() - WINDOW_SECONDS
        found = {key: number for key, number in self._numbers.items() if all_of_them or number.begun <= before}
        for key in found:
            del self._numbers[key]
        return list(found.values())

    def _count(self, agent: Agent, exchange: Exchange) -> None:
        refusal = exchange.refusal
        assert refusal is not None  # noqa: S101 - told_alone looked
        number = self._numbers.get((agent, refusal.code))
        if number is None:
            number = Number(agent, refusal.code, refusal.status, exchange.address, clock.now(), self._seconds())
            self._numbers[agent, refusal.code] = number
        number.count += 1
        number.address = exchange.address
