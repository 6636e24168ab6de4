"""Answers that are sent piece by piece: as fast as the caller reads, and no faster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from sanic.response import BaseHTTPResponse, HTTPResponse, ResponseStream

from api.http.held import FREE_BYTES, Held
from custody.kit.answer_kinds import Streamed
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError
from custody.kit.logs import logger

log = logger("api")
# Drop clients that read nothing for this long with a full socket buffer.
SEND_SECONDS = 3.0
# The same for a long answer, of which each piece has so long.
ANSWER_SECONDS = 10.0
PIECE = 16 * 1024


def whole(answer: HTTPResponse, held: Held, name: str, method: str) -> HTTPResponse:
    """The same answer; a long one is given to the connection only as its caller takes it, and counted meanwhile.

    Where that would be too much for the caller, a read is refused. What was done already is answered all the same.
    """
    if isinstance(cast("object", answer), ResponseStream):
        return answer
    content = answer.body or b""
    if len(content) <= FREE_BYTES:
        return answer
    headers = {**answer.headers, "content-length": str(len(content))}
    if method == "HEAD":
        return HTTPResponse(b"", answer.status, headers, answer.content_type)
    if method == "GET":
        held.room(name, len(content))

    async def send(stream: BaseHTTPResponse | ResponseStream) -> None:
        assert isinstance(stream, ResponseStream)  # noqa: S101 - it is the one below
        with held.hold(name, len(content)):
            for start in range(0, len(content), PIECE):
                if not await _send(stream, content[start : start + PIECE], ANSWER_SECONDS):
                    return

    piecewise = ResponseStream(send, status=answer.status, headers=headers, content_type=answer.content_type)
    return cast("HTTPResponse", piecewise)


def response(streamed: Streamed, still: Callable[[], Awaitable[object]], *, head: bool = False) -> HTTPResponse:
    """The answer; it ends when its pieces do, when the caller may not have them any more, or cannot keep up.

    `head`: the caller wants the head only, so no piece is read.
    """

    async def send(answer: BaseHTTPResponse | ResponseStream) -> None:
        assert isinstance(answer, ResponseStream)  # noqa: S101 - it is the one below
        if head:
            return
        chunks = streamed.chunks(still)
        try:
            async for chunk in chunks:
                if not await _send(answer, chunk):
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


async def _send(answer: ResponseStream, chunk: bytes, seconds: float = SEND_SECONDS) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await answer.write(chunk)  # type: ignore[arg-type]
    except TimeoutError:
        log.info("a stream ended", extra={"reason": "slow_reader"})
        assert answer.request is not None  # noqa: S101 - it is set before the first piece
        cast("asyncio.Transport", answer.request.transport).abort()
        return False
    return True
