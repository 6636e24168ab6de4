"""What is held in memory for callers who are slow to take or to send: a share for each, and a bound for all.

Short bodies and answers are not counted: there is always room for them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakValueDictionary

from custody.kit.errors import TooMany

# What is no longer than this is nobody's share.
FREE_BYTES = 64 * 1024
MAX_HELD_EACH = 16 * 1024 * 1024
MAX_HELD = 128 * 1024 * 1024
# Requests with a long body that are worked on for one tenant: each takes the loop for milliseconds.
MAX_LONG_AT_ONCE = 4


class TooMuchHeld(TooMany):
    """Too many large requests or responses of this client are in transit; finish them, then retry."""


class Held:
    """How many bytes of long bodies and answers are held, and for whom."""

    def __init__(self) -> None:
        self._all = 0
        self._each: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def room(self, name: str, size: int) -> None:
        """Raise TooMuchHeld if so many bytes more would be too much."""
        if size > FREE_BYTES and (self._each[name] + size > MAX_HELD_EACH or self._all + size > MAX_HELD):
            raise TooMuchHeld

    @asynccontextmanager
    async def turn(self, name: str, size: int) -> AsyncIterator[None]:
        """Wait until few enough long bodies of one tenant are worked on; a short one never waits."""
        if size <= FREE_BYTES:
            yield
            return
        turn = self._turns.setdefault(name, asyncio.Semaphore(MAX_LONG_AT_ONCE))
        async with turn:
            yield

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
