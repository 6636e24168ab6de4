"""Wake listeners when Postgres notifies a channel.

A notification carries no data: listeners read the rows themselves, so a lost one only costs time.
"""

import asyncio
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import asyncpg

from custody.kit.db import DatabaseAway, keep_alive
from custody.kit.logs import logger

log = logger(__name__)
_RELISTEN_SECONDS = 1.0


# For one topic, and for one share, once half of all places are taken.
_WHEN_MANY = 2
# One in so many places is reserved for topics and shares that have none.
_RESERVED = 5


class Listener:
    """Waits for a topic; removed with its last reference."""

    __slots__ = ("__weakref__", "_woken", "shares")

    def __init__(self, shares: frozenset[str] = frozenset()) -> None:
        self.shares = shares
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake, now or at the next wait."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return once woken since the last call, or after this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()


class Notifier:
    """The listeners of one process, by topic; `connected` while its connection listens."""

    def __init__(self) -> None:
        self._listeners: dict[str, WeakSet[Listener]] = {}
        self._shares: dict[str, WeakSet[Listener]] = {}
        self.connected = False
        self.closed = False
        self._empty = asyncio.Event()
        self._listening: asyncio.Task[Any] | None = None

    def waiting(self, topic: str) -> int:
        """The number of listeners of a topic."""
        return len(self._listeners.get(topic, ()))

    def sharing(self, share: str) -> int:
        """The number of listeners counted to a share, over all topics."""
        return len(self._shares.get(share, ()))

    def listener(
        self, topic: str, *, most: int, most_in_all: int, shares: frozenset[str] = frozenset()
    ) -> Listener | None:
        """Add a listener of a topic; None if there are too many.

        `shares`: what else it is counted to. Below half of all places only the topic's own limit applies; above, each
        topic and share gets few, and the last places are reserved for those with none, so none starves the others.
        """
        in_all = self._count()
        if self.closed or in_all >= most_in_all or self.waiting(topic) >= most:
            return None
        if in_all >= most_in_all // 2:
            room = _WHEN_MANY if in_all < most_in_all - most_in_all // _RESERVED else 1
            if max(self.waiting(topic), *map(self.sharing, shares), 0) >= room:
                return None
        listener = Listener(shares)
        self._listeners.setdefault(topic, WeakSet()).add(listener)
        for share in shares:
            self._shares.setdefault(share, WeakSet()).add(listener)
        return listener

    def leave(self, topic: str, listener: Listener) -> None:
        """Remove a listener."""
        present = self._listeners.get(topic, WeakSet())
        present.discard(listener)
        if not present:
            self._listeners.pop(topic, None)
        for share in listener.shares:
            sharing = self._shares.get(share, WeakSet())
            sharing.discard(listener)
            if not sharing:
                self._shares.pop(share, None)
        if self.closed and not self._listeners:
            self._empty.set()

    def notify(self, topic: str) -> None:
        """Wake every listener of a topic."""
        for listener in list(self._listeners.get(topic, ())):
            listener.wake()

    async def close(self, seconds: float = 2.0) -> None:
        """Wake all listeners, accept no new ones, and wait until they have left."""
        self.closed = True
        self._notify_all()
        if self._count():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._empty.wait()

    async def listen(self, url: str, channel: str) -> None:
        """Listen on a channel whose payloads are topics, until cancelled.

        On a separate connection, because a pool resets its listeners.
        """
        # A task that waits for a connection, which nothing but the task holds, would be collected as garbage with it.
        self._listening = asyncio.current_task()
        while True:
            try:
                await self._listen_once(url, channel)
            except DatabaseAway as problem:
                log.warning("not listening", extra={"channel": channel, "reason": type(problem).__name__})
            await asyncio.sleep(_RELISTEN_SECONDS)

    async def _listen_once(self, url: str, channel: str) -> None:
        connection = await asyncpg.connect(url, timeout=5)
        keep_alive(connection)
        try:
            gone = asyncio.Event()
            connection.add_termination_listener(lambda _: gone.set())
            await connection.add_listener(channel, lambda *sent: self.notify(sent[-1]))
            self.connected = True
            # Notifications sent while disconnected were lost.
            self._notify_all()
            await gone.wait()
        finally:
            self.connected = False
            connection.terminate()

    def _notify_all(self) -> None:
        for topic in list(self._listeners):
            self.notify(topic)

    def _count(self) -> int:
        return sum(map(len, self._listeners.values()))
