"""A count of what tenants have and wrote, as the signer knows it: before an act, in memory, without a round trip.

The database's figures are read when a tenant is first heard of, and again while they are active; in between the signer
adds what it does itself. So one signer is exact, and of several each may pass a quota by what the others did since it
last read. Figures decide nothing about money: limits on spend are judged elsewhere, and exactly.
"""

import asyncio
import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from custody.kit import quotas
from custody.kit.cache import Cache
from custody.kit.db import DatabaseAway, Pool
from custody.kit.logs import logger
from custody.kit.quotas import Limits
from custody.kit.tasks import spawn
from custody.policies.rules import ParsedRule
from custody.policies.sources import stored_type

log = logger(__name__)
REREAD_SECONDS: Final = 5.0
# Of tenants whose figures are kept; the one that was silent longest is forgotten, and read again when it comes.
MAX_TENANTS: Final = 20_000
# An agent with its two sealed keys, its head and its row of the audit log; create_agents counts as much.
AGENT_BYTES: Final = 3072
_DAILY: Final = ("orders_per_day", "bytes_per_day")
_COUNTED: Final = ("agents", "policy_bytes", "orders", *_DAILY)
_READ = "SELECT * FROM usage_read($1)"


class _Figures:
    """One tenant's: what was read, and what was added since."""

    __slots__ = ("added", "day", "read", "read_at", "reading")

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.added: Counter[str] = Counter()
        self.day = dt.date.min
        self.read_at = 0.0
        self.reading: asyncio.Task[None] | None = None

    def usage(self, name: str) -> int:
        return max(0, self.read[name] + self.added[name])

    def turn_over(self, today: dt.date) -> None:
        """A new day begins with nothing."""
        if today > self.day:
            for name in _DAILY:
                self.read[name] = self.added[name] = 0
            self.day = today


class Held:
    """The amounts an act has counted already; given back unless it was done."""

    def __init__(self, amounts: dict[str, int]) -> None:
        self.back = amounts

    def keep(self) -> None:
        """It was done."""
        self.back.clear()


class TenantQuotas:
    """The figures of every tenant that is active."""

    def __init__(self, pool: Pool, limits: Limits, today: Callable[[], dt.date] = quotas.today) -> None:
        self._pool = pool
        self.limits = limits
        self._today = today
        self._tenants: Cache[str, _Figures] = Cache(MAX_TENANTS)

    async def know(self, tenant: str) -> None:
        """Have figures of this tenant: waits for them once, and from then on reads them beside the work."""
        figures = self._of(tenant)
        if figures.reading is None and time.monotonic() - figures.read_at > REREAD_SECONDS:
            figures.reading = spawn(self._read(tenant, figures), "quotas")
        if not figures.read_at and figures.reading is not None:
            # Not called off with who waits for it: others wait too.
            await asyncio.shield(figures.reading)

    def forget(self, tenant: str) -> None:
        """Something was deleted: who makes room can use it at once."""
        self._tenants.drop(tenant)

    def need_room(self, tenant: str) -> None:
        """Raise if not one more order may be written; before work is put into it."""
        figures, allowed = self._of(tenant), self.limits.of(tenant)
        figures.turn_over(self._today())
        for name in ("orders", *_DAILY):
            quotas.check(name, figures.usage(name), getattr(allowed, name))

    @contextmanager
    def hold(self, tenant: str, *, spare: bool = False, **amounts: int) -> Iterator[Held]:
        """Count an act that is about to be done, or raise because it would be too much.

        `spare`: changes of rules get a quarter more, so that an agent that uses up its quota can still be stopped.
        """
        figures, allowed = self._of(tenant), self.limits.of(tenant)
        figures.turn_over(self._today())
        for name, amount in amounts.items():
            limit: int = getattr(allowed, name)
            if amount > 0:
                quotas.check(name, figures.usage(name), limit + limit // 4 if spare else limit, amount)
        for name, amount in amounts.items():
            figures.added[name] += amount
        held = Held(amounts)
        try:
            yield held
        finally:
            for name, amount in held.back.items():
                figures.added[name] -= amount

    def _of(self, tenant: str) -> _Figures:
        figures = self._tenants.get(tenant)
        if figures is None:
            figures = _Figures()
            self._tenants.put(tenant, figures)
        return figures

    async def _read(self, tenant: str, figures: _Figures) -> None:
        before = figures.added.copy()
        try:
            row = await self._pool.fetchrow(_READ, tenant)
        except DatabaseAway:
            # Cached figures keep counting; a waiting caller will see for itself that the database is away.
            log.warning("quotas are counted without the database")
            return
        finally:
            figures.reading = None
        figures.read_at = time.monotonic()
        # What was counted while it was read may be in it or not: rather twice than not at all.
        figures.added.subtract(before)
        figures.read = Counter({name: int(row[name]) for name in _COUNTED})
        figures.day = row["day"]


def rules_bytes(rules: tuple[ParsedRule, ...]) -> int:
    """Count a set's bytes as `rules_bytes` of the database does."""
    return sum(stored_bytes(rule.id, stored_type(rule), rule.config) for rule in rules)


def stored_bytes(rule_id: str, kind: str, config: str) -> int:
    """Count one stored rule's bytes."""
    return len(rule_id.encode()) + len(kind) + len(config.encode())
