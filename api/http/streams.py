"""Answers that are sent piece by piece: as fast as the caller reads, and no faster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from sanic.response import BaseHTTPResponse, HTTPResponse, ResponseStream

from custody.kit.answers import Streamed
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError
from custody.kit.logs import logger

log = logger("api")
# Who takes nothing for so long, while the kernel holds all that it can for him, is let go.
SEND_SECONDS = 3.0


def response(streamed: Streamed, still: Callable[[], Awaitable[object]]) -> HTTPResponse:
    """The answer; it ends when its pieces do, when the caller may not have them any more, or cannot keep up."""

    async def send(answer: BaseHTTPResponse | ResponseStream) -> None:
        assert isinstance(answer, ResponseStream)  # noqa: S101 - it is the one below
        chunks = streamed.chunks(still)
        try:
            async for chunk in chunks:
                if not await _sent(answer, chunk):
                    return
        except CustodyError as problem:
            log.info("a stream ended", extra={"reason": problem.code})
        except DatabaseAway as problem:
            log.warning("a stream ended", extra={"reason": type(problem).__name__})
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    # A proxy like nginx otherwise holds back what comes until its buffer is full.
    unheld = {"X-Accel-Buffering": "no"}
    # The server takes either; its types know the one with a body only.
    return cast("HTTPResponse", ResponseStream(send, headers=unheld, content_type=streamed.media))


async def _sent(answer: ResponseStream, chunk: bytes) -> bool:
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await answer.write(chunk)  # type: ignore[arg-type]
    except TimeoutError:
        log.info("a stream ended", extra={"reason": "slow_reader"})
        assert answer.request is not None  # noqa: S101 - it is set before the first piece
        cast("asyncio.Transport", answer.request.transport).abort()
        return False
    return True
