"""Sending that nobody waits for: bounded, and its failures are logged, without what was sent."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from custody.kit.logs import logger
from custody.kit.tasks import spawn

log = logger(__name__)
MAX_UNDER_WAY = 100
_LAST_SECONDS = 3.0


class Background:
    """Sends a few at a time; the excess is dropped and logged, because the person will ask again."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._under_way: set[asyncio.Task[None]] = set()

    def send(self, sending: Coroutine[Any, Any, None]) -> None:
        """Begin to send."""
        if len(self._under_way) >= MAX_UNDER_WAY:
            sending.close()
            log.error("too many wait to be sent; one was dropped", extra={"what": self._what})
            return
        spawn(sending, self._what, among=self._under_way, on_failure=_not_sent)

    async def close(self) -> None:
        """Wait for what is under way, a little."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_LAST_SECONDS)


def _not_sent(what: str, problem: BaseException) -> None:
    # What the other side said may repeat an address or a code.
    log.error("not sent", extra={"what": what, "reason": type(problem).__name__})
