"""Waking whoever waits for something to happen in the database, by what Postgres tells on a channel.

What is told wakes and says nothing more: everybody reads the rows himself, so a bell that is silent only costs time.
"""

import asyncio
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import asyncpg

from custody.kit.db import DatabaseAway
from custody.kit.logs import logger

log = logger(__name__)
_RELISTEN_SECONDS = 1.0


# For one topic, once half of all places are taken.
_WHEN_MANY = 2


class Listener:
    """One who waits for a topic; gone with its last reference."""

    __slots__ = ("__weakref__", "_rung")

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake, now or as soon as it waits."""
        self._rung.set()

    async def heard(self, seconds: float) -> None:
        """Return once it was rung since the last time, or when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()


class Bell:
    """The listeners of one process, by topic; `works` while there is a connection that hears."""

    def __init__(self) -> None:
        self._listeners: dict[str, WeakSet[Listener]] = {}
        self.works = False
        self.closed = False
        self._nobody = asyncio.Event()
        self._hearing: asyncio.Task[Any] | None = None

    def listener(self, topic: str, *, most: int, most_in_all: int) -> Listener | None:
        """Begin to wait for a topic; None where too many do already."""
        present, in_all = self._listeners.get(topic, WeakSet()), self._count()
        # From half on few are enough for anybody, so that some topics cannot leave nothing to the others.
        room = most if in_all < most_in_all // 2 else min(most, _WHEN_MANY)
        if self.closed or len(present) >= room or in_all >= most_in_all:
            return None
        listener = Listener()
        self._listeners.setdefault(topic, present).add(listener)
        return listener

    def leave(self, topic: str, listener: Listener) -> None:
        """Wait no more."""
        present = self._listeners.get(topic, WeakSet())
        present.discard(listener)
        if not present:
            self._listeners.pop(topic, None)
        if self.closed and not self._listeners:
            self._nobody.set()

    def ring(self, topic: str) -> None:
        """Wake everybody who waits for a topic."""
        for listener in list(self._listeners.get(topic, ())):
            listener.ring()

    async def close(self, seconds: float = 2.0) -> None:
        """Wake everybody, to go home, and wait until they went; nobody can begin to wait any more."""
        self.closed = True
        self._ring_all()
        if self._count():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._nobody.wait()

    async def listen(self, url: str, channel: str) -> None:
        """Hear a channel whose payloads are topics, until cancelled.

        On a connection of its own, for a pool that lends connections to others forgets who listens.
        """
        # A task that waits for a connection, which nothing but the task holds, would be collected as garbage with it.
        self._hearing = asyncio.current_task()
        while True:
            try:
                await self._listen_once(url, channel)
            except DatabaseAway as problem:
                log.warning("not listening", extra={"channel": channel, "reason": type(problem).__name__})
            await asyncio.sleep(_RELISTEN_SECONDS)

    async def _listen_once(self, url: str, channel: str) -> None:
        connection = await asyncpg.connect(url, timeout=5)
        try:
            gone = asyncio.Event()
            connection.add_termination_listener(lambda _: gone.set())
            await connection.add_listener(channel, lambda *heard: self.ring(heard[-1]))
            self.works = True
            # What was told while nobody listened was not heard.
            self._ring_all()
            await gone.wait()
        finally:
            self.works = False
            connection.terminate()

    def _ring_all(self) -> None:
        for topic in list(self._listeners):
            self.ring(topic)

    def _count(self) -> int:
        return sum(map(len, self._listeners.values()))
