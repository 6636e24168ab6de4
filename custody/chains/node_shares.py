"""The share of tenants in the operator's nodes, which all of them use and which often cost money. Decision 0106."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

from custody.kit.cache import Cache
from custody.kit.db import Pool
from custody.kit.errors import TooMany
from custody.kit.maker_store import maker_of
from custody.kit.windows import Windows

# Questions of one person's tenants in a minute for orders, and as many for looking, where the operator sets nothing
# else; an order asks about eight.
QUESTIONS_A_MINUTE: Final = 12_000
WINDOW_SECONDS: Final = 60.0
SETTING: Final = "SERVICE_RATE_LIMIT_NODE_CALLS"
# Requests of one person's tenants under way at once, to each node for orders and to all for what somebody looks at;
# more of them wait within their own time.
ORDERS_AT_ONCE: Final = 16
LOOKS_AT_ONCE: Final = 8
# What is counted apart, in words.
_KINDS: Final = {"orders": "orders", "looks": "what they look at"}
# People and tenants remembered; those forgotten are looked up again, and what they asked stays counted.
MAX_REMEMBERED: Final = 10_000


class NodeCallsSpent(TooMany):
    """This tenant, with others of the same person, asked the nodes too much in this minute; wait, then retry.

    An order that is not broadcast needs no node.
    """


class NodeShare:
    """The share of one person's tenants, or of one tenant that an operator made."""

    def __init__(self, count: Callable[[str, int], tuple[int, float]], most: int) -> None:
        self._count, self._most = count, most
        # By the address of the node, so that a silent one keeps nobody from another chain's.
        self._orders: dict[str, asyncio.Semaphore] = {}
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)

    def order_turn(self, url: str) -> asyncio.Semaphore:
        """The turn of a request for an order."""
        return self._orders.setdefault(url, asyncio.Semaphore(ORDERS_AT_ONCE))

    def look_turn(self, _url: str) -> asyncio.Semaphore:
        """The turn of a request for what somebody looks at."""
        return self._looks

    def count_order(self, questions: int) -> None:
        """Count questions for an order that must be asked, whatever there were before."""
        self._count("orders", questions)

    def spend_order(self, questions: int) -> None:
        """Count questions for an order; raises NodeCallsSpent where there are no more in this minute."""
        self._spend("orders", questions)

    def spend_look(self, questions: int) -> None:
        """Count questions of somebody who looks; raises NodeCallsSpent where there are no more in this minute."""
        self._spend("looks", questions)

    def _spend(self, kind: str, questions: int) -> None:
        asked, seconds = self._count(kind, questions)
        if self._most and asked > self._most:
            wait = max(1, math.ceil(seconds))
            raise NodeCallsSpent(
                f"This tenant, with any others of the same person, may ask the nodes {self._most:,} questions a "
                f"minute for {_KINDS[kind]} ({SETTING}); retry in {wait} s, or ask the operator for more.",
                retry_after=wait,
            )


class NodeShares:
    """Shares by person. Each process counts for itself; `most` 0 sets no bound."""

    def __init__(self, most: int = QUESTIONS_A_MINUTE) -> None:
        self._most = most
        self._asked = Windows(WINDOW_SECONDS)
        # Who made a tenant never changes while it is there.
        self._makers: Cache[str, str] = Cache(MAX_REMEMBERED, seconds=WINDOW_SECONDS)
        self._shares: Cache[str, NodeShare] = Cache(MAX_REMEMBERED)

    async def of(self, pool: Pool, tenant: str) -> NodeShare:
        """The share that a tenant has, alone or with others of its maker."""
        if (whose := self._makers.get(tenant)) is None:
            person = await maker_of(pool, tenant)
            whose = f"tenant {tenant}" if person is None else f"person {person}"
            self._makers.put(tenant, whose)
        if (share := self._shares.get(whose)) is None:
            share = NodeShare(lambda kind, questions: self._hit(f"{kind} of {whose}", questions), self._most)
            self._shares.put(whose, share)
        return share

    def _hit(self, name: str, questions: int) -> tuple[int, float]:
        now = time.monotonic()
        asked, ends = self._asked.hit(name, now, questions)
        return asked, ends - now
