"""Background work that restarts whenever it ends.

Stopping the proxy instead would be worse. Each request is checked by itself and refused if something it needs is
missing, so a short absence of background work opens nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from custody.kit.logs import logger

log = logger("proxy")
AGAIN_SECONDS = 1.0


async def run_forever(begin: Callable[[], Awaitable[None]], *, again_seconds: float = AGAIN_SECONDS) -> None:
    """Repeat this work until cancelled, even after a failure."""
    while True:
        try:
            await begin()
            log.error("background work has ended; restarting")
        except Exception:
            log.exception("background work has failed; restarting")
        await asyncio.sleep(again_seconds)
