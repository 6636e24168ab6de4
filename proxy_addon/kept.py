"""Work that goes on for as long as the proxy runs: should it end, it is begun again.

Ending the proxy instead would help nobody. Every request is judged by itself and refused where what it needs is not
there, so work that is missing for a moment opens nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from custody.kit.logs import logger

log = logger("proxy")
AGAIN_SECONDS = 1.0


async def kept(begin: Callable[[], Awaitable[None]], *, again_seconds: float = AGAIN_SECONDS) -> None:
    """Do this work until cancelled, whatever becomes of one try."""
    while True:
        try:
            await begin()
            log.error("work that must go on has ended; it begins again")
        except Exception:
            log.exception("work that must go on has failed; it begins again")
        await asyncio.sleep(again_seconds)
