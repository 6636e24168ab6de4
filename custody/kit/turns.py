"""The turn of a request with a long body, given up while the request waits for a node.

Otherwise one request that waits for a silent node would hold up all that could be worked on meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_turn: ContextVar["Turn | None"] = ContextVar("turn", default=None)


class Seats(asyncio.Semaphore):
    """Seats of those who may work on something at once; they know whether turns are taken at all."""

    def __init__(self, seats: int) -> None:
        super().__init__(seats)
        self._risen = 0

    def release(self) -> None:
        """Give a seat back."""
        self._risen += 1
        super().release()

    async def acquire_while_taken(self, seconds: float) -> bool:
        """Take a seat; False once nobody has risen for so long, because who is seated may be blocked."""
        while True:
            risen = self._risen
            try:
                async with asyncio.timeout(seconds):
                    return await self.acquire()
            except TimeoutError:
                if risen == self._risen:
                    return False


class Turn:
    """The turn of one request, until its end; what the request starts shares it."""

    def __init__(self, seats: asyncio.Semaphore) -> None:
        self._seats = seats
        self._seated = self._over = False
        self._waits = 0
        # One of a request's tasks asks for its seat at a time: a second one would wait for what the first has.
        self._asking = asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._sit()
        _turn.set(self)

    async def __aexit__(self, *_: object) -> None:
        # What goes on after its request ended takes no turn any more.
        self._over = True
        self._rise()
        _turn.set(None)

    async def come_back(self) -> None:
        """Take the turn again once nothing is waited for."""
        self.give_up()
        async with self._asking:
            if not (self._waits or self._over or self._seated):
                await self._sit()

    def give_up(self) -> None:
        """Wait no longer, without the turn: for what is cancelled."""
        self._waits -= 1

    def go(self) -> None:
        """Let another have the turn."""
        self._waits += 1
        self._rise()

    async def _sit(self) -> None:
        await self._seats.acquire()
        self._seated = True
        if self._over or self._waits:
            # It ended, or went away again, while this waited.
            self._rise()

    def _rise(self) -> None:
        if self._seated:
            self._seated = False
            self._seats.release()


@asynccontextmanager
async def aside() -> AsyncIterator[None]:
    """Wait for a node without the turn of this request, if it has one."""
    turn = _turn.get()
    if turn is None:
        yield
        return
    turn.go()
    try:
        yield
    except asyncio.CancelledError:
        turn.give_up()
        raise
    except BaseException:
        await turn.come_back()
        raise
    await turn.come_back()
