"""One post to a webhook's receiver: only the head of its answer counts, and little of the rest is read."""

import asyncio
import re
from email.utils import parsedate_to_datetime

import httpcore
import msgspec

from custody.kit import clock
from custody.kit.outside import Connections, NoAnswer, Outside, Problem

# A connection is kept for what follows at once; the receiver's own patience is longer than this.
_KEEP_SECONDS = 1.0
# An answer as short as this is read to its end, so that the connection can be kept; a longer one is not read at all.
_SHORT_BODY = 4096
_BODY_SECONDS = 1.0
_SECONDS = re.compile(rb"[0-9]{1,9}\Z")


class Answer(msgspec.Struct, frozen=True):
    """The result of a post: a status, or the problem instead of one. `retry_after` is what the receiver asks for."""

    status: int | None = None
    problem: Problem | None = None
    retry_after: float | None = None


class Receiver:
    """The connections to one endpoint; nobody else's requests wait for them."""

    def __init__(self, outside: Outside, tenant: str, most: int) -> None:
        self._connections = Connections(outside, tenant, most, _KEEP_SECONDS)

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send and hear the answer's head; whatever goes wrong is a word."""
        try:
            return await self._connections.ask("POST", url, headers, body, _read_answer)
        except NoAnswer as problem:
            return Answer(problem=problem.problem)

    async def close(self) -> None:
        """Close every connection."""
        await self._connections.close()


async def _read_answer(response: httpcore.Response) -> Answer:
    told = {name.lower(): value for name, value in response.headers}
    await _read_if_short(response, told)
    return Answer(status=response.status, retry_after=_retry_after(told.get(b"retry-after")))


async def _read_if_short(response: httpcore.Response, told: dict[bytes, bytes]) -> None:
    length = told.get(b"content-length", b"0" if response.status == 204 else b"")
    if _SECONDS.match(length) is None or int(length) > _SHORT_BODY:
        return
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for _ in response.aiter_stream():
                pass
    except (TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        return  # the head was the answer


def _retry_after(said: bytes | None) -> float | None:
    if said is None:
        return None
    if _SECONDS.match(said):
        return float(said)
    try:
        return (parsedate_to_datetime(said.decode("ascii")) - clock.now()).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
