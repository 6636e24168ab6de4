"""Sending that nobody waits for: bounded, and its failures are logged, without what was sent."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from custody.kit.logs import logger

log = logger(__name__)
MAX_UNDER_WAY = 100
_LAST_SECONDS = 3.0


class Background:
    """Sends a few at a time; what would be too many is dropped and logged, for whoever waits will ask again."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._under_way: set[asyncio.Task[None]] = set()

    def send(self, sending: Coroutine[Any, Any, None]) -> None:
        """Begin to send."""
        if len(self._under_way) >= MAX_UNDER_WAY:
            sending.close()
            log.error("too many wait to be sent; one was dropped", extra={"what": self._what})
            return
        task = asyncio.get_running_loop().create_task(sending)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Wait for what is under way, a little."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_LAST_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            # What the other side said may repeat an address or a code.
            log.error("not sent", extra={"what": self._what, "reason": type(problem).__name__})
