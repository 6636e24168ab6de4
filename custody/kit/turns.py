"""A turn at work of which little is done at once, given up for as long as a node is waited for.

Else one request that waits for somebody who is silent keeps those that could be worked on meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_turn: ContextVar["Turn | None"] = ContextVar("turn", default=None)


class Turn:
    """The turn of one request, until its end; what the request starts shares it."""

    def __init__(self, seats: asyncio.Semaphore) -> None:
        self._seats = seats
        self._seated = self._over = False
        self._waits = 0

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
        self._waits -= 1
        if not (self._waits or self._over):
            await self._sit()

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
    finally:
        await turn.come_back()
