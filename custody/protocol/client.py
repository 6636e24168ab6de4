"""Asking the signer: one connection, many requests in flight, errors as the kinds everybody knows.

A request that was sent when the connection died is not repeated here: only the caller knows whether it may be.
Signing orders may, because the same `tx_id` gives the same answer; `ask` does that for them.
"""

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any

import msgspec

from custody.kit import errors
from custody.kit.callers import Caller, IdempotencyKey, Origin, Proof
from custody.kit.logs import logger
from custody.protocol.framing import BadFrame, frame, read_frame
from custody.protocol.messages import (
    VERSION,
    Body,
    Done,
    Failed,
    Hello,
    IssueReceipt,
    Outcome,
    PublicKeys,
    ReplaceEvm,
    Reply,
    Request,
    RevealForRoute,
    SignEvm,
    SignSolana,
    SignTypedData,
    Simulate,
    Status,
)

log = logger(__name__)
DEADLINE_SECONDS = 10.0
# How long a request waits for a signer that restarts; it is back within a second (docs/operate.md).
RECONNECT_SECONDS = 4.0
RETRY_SECONDS = 0.02
REPEATABLE = (
    SignEvm, SignTypedData, SignSolana, ReplaceEvm, Simulate, IssueReceipt, RevealForRoute, PublicKeys, Status,
)  # fmt: skip


class SignerUnavailable(errors.Unavailable):
    """The signer is not reachable right now; nothing was signed. Try again shortly."""


class RequestTooLarge(errors.Invalid):
    """This request is larger than the signer takes."""


class OutcomeUnknown(errors.Unavailable):
    """The signer went away while it worked on this; look whether it was done before you try again."""


class InternalFault(Exception):
    """The signer had a fault of its own; becomes a 500 without detail."""


_KINDS: dict[str, type[errors.CustodyError]] = {
    "BadOrder": errors.Invalid,
    "BadProof": errors.Unauthenticated,
    "Forbidden": errors.Forbidden,
    "NotFound": errors.NotFound,
    "Conflict": errors.Conflict,
    "Frozen": errors.Frozen,
    "TooMany": errors.TooMany,
    "Stale": errors.Unavailable,
    "Unavailable": errors.Unavailable,
}


@dataclass(frozen=True)
class Answered:
    """An outcome, and whether it is the replay of an earlier one."""

    outcome: Outcome
    replayed: bool


class Data(dict[str, Any]):
    """The data of a `Done`, which knows whether it is an earlier answer."""

    replayed = False

    def replayed_or(self, result: Any) -> Any:
        """The result, marked when it is the answer to an earlier request with the same Idempotency-Key."""
        return Replayed(result) if self.replayed else result


class Replayed(msgspec.Struct, frozen=True):
    """A result that an earlier request with the same Idempotency-Key got."""

    data: Any


async def told(signer: "SignerClient", body: Body, origin: Origin) -> dict[str, Any]:
    """Ask in nobody's name for a story that answers with data."""
    outcome = (await signer.tell(body, origin)).outcome
    assert isinstance(outcome, Done)  # noqa: S101 - the protocol says so
    return outcome.data


async def asked(signer: "SignerClient", body: Body, caller: Caller) -> Data:
    """Ask for a story that answers with data."""
    answer = await signer.ask(body, caller)
    assert isinstance(answer.outcome, Done)  # noqa: S101 - the protocol says so
    data = Data(answer.outcome.data)
    data.replayed = answer.replayed
    return data


@dataclass
class _Link:
    """One connection and the requests in flight on it."""

    writer: asyncio.StreamWriter
    waiting: dict[int, asyncio.Future[Reply]] = field(default_factory=dict)
    reading: asyncio.Future[None] | None = None


@dataclass
class SignerClient:
    """The signer as this process sees it. Reconnects by itself; `close` ends it."""

    path: str
    process: str
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _link: _Link | None = None
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _encoder: msgspec.msgpack.Encoder = field(default_factory=msgspec.msgpack.Encoder)

    async def ask(self, body: Body, caller: Caller) -> Answered:
        """Ask in a caller's name. Raises the named kinds; a signing order survives a signer that restarts."""
        return await self._ask(body, caller.proof, caller.origin, caller.idempotency)

    async def tell(self, body: Body, origin: Origin) -> Answered:
        """Ask in nobody's name: public keys, status, what a node said."""
        return await self._ask(body, None, origin, None)

    async def _ask(self, body: Body, proof: Proof | None, origin: Origin, key: IdempotencyKey | None) -> Answered:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DEADLINE_SECONDS
        give_up = loop.time() + RECONNECT_SECONDS
        while True:
            sent = False
            try:
                link = await self._connected()
                request = Request(
                    VERSION, next(self._numbers), int((deadline - loop.time()) * 1000), origin, body, proof, key
                )
                content = self._framed(request)
                answer = link.waiting[request.n] = loop.create_future()
                link.writer.write(content)
                sent = True
                async with asyncio.timeout_at(deadline):
                    return _open(await answer)
            except (OSError, BadFrame):
                if sent and not isinstance(body, REPEATABLE):
                    raise OutcomeUnknown from None
                if loop.time() >= give_up:
                    raise SignerUnavailable from None
                await asyncio.sleep(RETRY_SECONDS)
            except TimeoutError:
                link.waiting.pop(request.n, None)
                raise OutcomeUnknown from None

    def _framed(self, request: Request) -> bytes:
        try:
            return frame(self._encoder.encode(request))
        except BadFrame:
            # Not the connection's fault: asking again would not help.
            raise RequestTooLarge from None

    async def _connected(self) -> _Link:
        async with self._connecting:
            if self._link is not None and not self._link.writer.is_closing():
                return self._link
            reader, writer = await asyncio.open_unix_connection(self.path)
            writer.write(frame(self._encoder.encode(Hello(VERSION, self.process))))
            hello = await read_frame(reader, msgspec.msgpack.Decoder(Hello))
            if hello is None or hello.version != VERSION:
                writer.close()
                raise ConnectionError("the signer speaks another version")
            self._link = _Link(writer)
            self._link.reading = asyncio.ensure_future(self._read(reader, self._link))
            return self._link

    async def _read(self, reader: asyncio.StreamReader, link: _Link) -> None:
        decoder = msgspec.msgpack.Decoder(Reply)
        try:
            while (reply := await read_frame(reader, decoder)) is not None:
                if (waiting := link.waiting.pop(reply.n, None)) is not None and not waiting.done():
                    waiting.set_result(reply)
        except (OSError, BadFrame) as problem:
            log.warning("connection to the signer broke", extra={"reason": str(problem)})
        finally:
            link.writer.close()
            for waiting in link.waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError("the signer closed the connection"))

    async def close(self) -> None:
        """Close the connection."""
        if self._link is not None and self._link.reading is not None:
            self._link.writer.close()
            self._link.reading.cancel()


def _open(reply: Reply) -> Answered:
    outcome = reply.outcome
    if not isinstance(outcome, Failed):
        return Answered(outcome, reply.replayed)
    kind = _KINDS.get(outcome.kind)
    if kind is None:
        raise InternalFault(outcome.message)
    raise kind(outcome.message, code=outcome.code, **outcome.context)
