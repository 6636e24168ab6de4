"""Memory held for callers that are slow to send or to receive: a share for each, and a bound for all.

Short bodies and answers are not counted: there is always room for them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from custody.kit.errors import TooMany
from custody.kit.turns import Seats, Turn

# What is no longer than this is nobody's share.
FREE_BYTES = 64 * 1024
MAX_HELD_EACH = 16 * 1024 * 1024
MAX_HELD = 128 * 1024 * 1024
# Requests with a long body, and as many with a long answer, that are worked on for one tenant: each takes the loop for
# ten milliseconds and more, and beside four of each of three tenants others' reads took five times as long (`make
# attacks`). An order never waits for reads.
MAX_LONG_AT_ONCE = 1
# Long reads of all tenants take turns as well: a short request is served between two pieces of one long answer, not of
# as many as there are tenants. Nobody waits longer than this for that, however slow the others' reads are.
MAX_TURN_SECONDS = 0.5
# Reads whose longest answer is known, by whose they are and by route; a list not yet known waits as a long one does,
# or the first reads of it would come all at once.
MAX_KNOWN = 50_000


class TooMuchHeld(TooMany):
    """Too many large requests or responses of this client are in transit; finish them, then retry."""


class Held:
    """The bytes of long bodies and answers that are held, by holder."""

    def __init__(self) -> None:
        self._all = 0
        self._each: Counter[str] = Counter()
        self._turns: WeakValueDictionary[tuple[str, bool], Seats] = WeakValueDictionary()
        self._reading = asyncio.Lock()
        self._longest: dict[tuple[str, str], int] = {}

    def room(self, name: str, size: int) -> None:
        """Raise TooMuchHeld if so many bytes more would be too much."""
        if size > FREE_BYTES and (self._each[name] + size > MAX_HELD_EACH or self._all + size > MAX_HELD):
            raise TooMuchHeld

    def expect(self, name: str, route: str) -> int:
        """Return the length of a holder's longest answer to a read of this route; 0 if none is known."""
        return self._longest.get((name, route), 0)

    def remember(self, name: str, route: str, size: int, *, listed: bool = False) -> None:
        """Remember how long a list, or another long answer, was: that is known only when the work is done."""
        if size <= FREE_BYTES and not listed:
            return
        longest = max(size, self._longest.pop((name, route), 0))
        if len(self._longest) >= MAX_KNOWN:
            del self._longest[next(iter(self._longest))]
        self._longest[name, route] = longest

    @asynccontextmanager
    async def read(self, name: str, route: str, *, listed: bool) -> AsyncIterator[None]:
        """Wait as `turn` does for what is known of a read; of a list that nobody has read yet, as a long one waits.

        That may be short after all and stand behind one that is blocked, so it waits only while turns are taken.
        """
        if not listed or (name, route) in self._longest:
            async with self.turn(name, self.expect(name, route), reads=True):
                yield
            return
        seats = self._seats(name, reads=True)
        if not await seats.acquire_while_taken(MAX_TURN_SECONDS):
            yield
            return
        try:
            async with self._read_alone():
                yield
        finally:
            seats.release()

    @asynccontextmanager
    async def turn(self, name: str, size: int, *, reads: bool) -> AsyncIterator[None]:
        """Wait until few enough long bodies, or answers, are worked on; what is known to be short never waits.

        A request with a long body that waits for a node is not worked on meanwhile.
        """
        if size <= FREE_BYTES:
            yield
            return
        seats = self._seats(name, reads=reads)
        if not reads:
            async with Turn(seats):
                yield
            return
        async with seats, self._read_alone():
            yield

    def _seats(self, name: str, *, reads: bool) -> Seats:
        return self._turns.setdefault((name, reads), Seats(MAX_LONG_AT_ONCE))

    @asynccontextmanager
    async def _read_alone(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(MAX_TURN_SECONDS):
                await self._reading.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._reading.release()

    @contextmanager
    def hold(self, name: str, size: int) -> Iterator[None]:
        """Count bytes for as long as they are held."""
        if size <= FREE_BYTES:
            yield
            return
        self._all += size
        self._each[name] += size
        try:
            yield
        finally:
            self._all -= size
            self._each[name] -= size
            if not self._each[name]:
                del self._each[name]
