"""Memory held for callers that are slow to send or to receive: a share for each, and a bound for all.

Short bodies and answers are not counted: there is always room for them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from weakref import WeakValueDictionary

from custody.kit.errors import TooMany
from custody.kit.turns import Turn

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
# Reads whose longest answer is known, by whose they are and by route. Of a list that is not, the first reads would come
# all at once, so one of them shows how long it is.
MAX_KNOWN = 50_000


class TooMuchHeld(TooMany):
    """Too many large requests or responses of this client are in transit; finish them, then retry."""


class Held:
    """The bytes of long bodies and answers that are held, by holder."""

    def __init__(self) -> None:
        self._all = 0
        self._each: Counter[str] = Counter()
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Semaphore] = WeakValueDictionary()
        self._reading = asyncio.Lock()
        self._longest: dict[tuple[str, str], int] = {}
        # Lists of which the first read is under way.
        self._first: dict[tuple[str, str], asyncio.Event] = {}

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
        """Wait as `turn` does for what is known of a read; of a list that nobody has read yet, one goes ahead.

        Those that come meanwhile wait until it is known how long it is, or for MAX_TURN_SECONDS.
        """
        place, least = (name, route), 0
        if listed and place not in self._longest:
            if place not in self._first:
                ended = self._first[place] = asyncio.Event()
                try:
                    async with self._read_alone():
                        yield
                finally:
                    del self._first[place]
                    ended.set()
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_TURN_SECONDS):
                    await self._first[place].wait()
                # A short first answer says nothing of what others of the burst ask for.
                least = FREE_BYTES + 1
        async with self.turn(name, max(least, self.expect(name, route)), reads=True):
            yield

    @asynccontextmanager
    async def turn(self, name: str, size: int, *, reads: bool) -> AsyncIterator[None]:
        """Wait until few enough long bodies, or answers, are worked on; what is known to be short never waits.

        A request with a long body that waits for a node is not worked on meanwhile.
        """
        if size <= FREE_BYTES:
            yield
            return
        seats = self._turns.setdefault((name, reads), asyncio.Semaphore(MAX_LONG_AT_ONCE))
        if not reads:
            async with Turn(seats):
                yield
            return
        async with seats, self._read_alone():
            yield

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
