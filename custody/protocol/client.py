"""Asking a worker: one connection, many requests in flight, errors as the kinds everybody knows.

A request that was sent when the connection died is not repeated here: unless its command declares that it may be.
Signing orders may, because the same `tx_id` gives the same answer.
"""

import asyncio
import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import msgspec

from custody.kit import errors
from custody.kit.answers import Answered
from custody.kit.callers import Authorization, Caller, IdempotencyKey, Origin, Proof
from custody.kit.logs import logger
from custody.kit.tasks import spawn
from custody.protocol.command import Command, R, declaration_of
from custody.protocol.failures import KINDS
from custody.protocol.frames import VERSION, Hello, Reply, Request
from custody.protocol.framing import BadFrame, frame, read_frame

log = logger(__name__)
DEADLINE_SECONDS = 10.0
# How long a request waits for a signer that restarts; it is back within a second (docs/operate.md).
RECONNECT_SECONDS = 4.0
RETRY_SECONDS = 0.02


class SignerUnavailable(errors.Unavailable):
    """The signer is not reachable; nothing was signed. Retry shortly."""


class RequestTooLarge(errors.Invalid):
    """The request is larger than the signer accepts."""


class OutcomeUnknown(errors.Unavailable):
    """The outcome is unknown: it may be carried out yet. Repeat it under the same Idempotency-Key, or look for it."""


def _unknown(command: Command[Any], happened: str) -> OutcomeUnknown:
    """Names the worker that was asked, and what happened."""
    asked = " or ".join(sorted(declaration_of(type(command)).workers, reverse=True)).replace("signer", "the signer")
    return OutcomeUnknown(
        f"The outcome is unknown: {happened.format(asked)}, and the request may be carried out yet. Repeat it under "
        "the same Idempotency-Key; without one, wait a minute and look for its effect before you send it again."
    )


class InternalFault(Exception):
    """The signer had a fault of its own; becomes a 500 without detail."""


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
    _closed: bool = False
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _encoder: msgspec.msgpack.Encoder = field(default_factory=msgspec.msgpack.Encoder)

    async def ask(self, command: Command[R], caller: Caller) -> Answered[R]:
        """Ask in a caller's name. Raises the named kinds; a signing order survives a signer that restarts."""
        reply = await self._ask(command, caller.proof, caller.origin, caller.idempotency, caller.authorization)
        return Answered(_read(command, reply), reply.replayed)

    async def tell(self, command: Command[R], origin: Origin) -> R:
        """Ask in nobody's name: public keys, status, what a node said."""
        return _read(command, await self._ask(command, None, origin))

    async def _ask(
        self,
        command: Command[Any],
        proof: Proof | None,
        origin: Origin,
        key: IdempotencyKey | None = None,
        authorization: Authorization | None = None,
    ) -> Reply:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DEADLINE_SECONDS
        give_up = loop.time() + RECONNECT_SECONDS
        declared = declaration_of(type(command))
        # Whether it may have been carried out: no connection that breaks later takes that back.
        acted = False
        while True:
            n, link, sent = next(self._numbers), None, False
            try:
                async with asyncio.timeout_at(deadline):
                    link = await self._connect()
                    request = Request(
                        VERSION,
                        n,
                        int((deadline - loop.time()) * 1000),
                        origin,
                        command,
                        proof,
                        key,
                        authorization if declared.authorized else None,
                    )
                    content = self._frame(request)
                    answer = link.waiting[n] = loop.create_future()
                    link.writer.write(content)
                    sent = True
                    acted = acted or not declared.repeatable or bool(declared.audit)
                    return _checked_reply(await answer)
            except TimeoutError:
                # Before OSError, of which it is one.
                if link is not None:
                    link.waiting.pop(n, None)
                raise _unknown(command, "{} did not answer in time") if acted else SignerUnavailable from None
            except (OSError, BadFrame, SignerUnavailable):
                if self._closed or loop.time() >= give_up or (sent and not declared.repeatable):
                    raise _unknown(command, "the connection to {} broke") if acted else SignerUnavailable from None
                await asyncio.sleep(RETRY_SECONDS)

    def _frame(self, request: Request[Command[Any]]) -> bytes:
        try:
            return frame(self._encoder.encode(request))
        except BadFrame:
            # Not the connection's fault: asking again would not help.
            raise RequestTooLarge from None

    async def _connect(self) -> _Link:
        async with self._connecting:
            if self._link is not None and not self._link.writer.is_closing():
                return self._link
            if self._closed:
                # What is still under way when this process ends opens no connection that nobody would close.
                raise SignerUnavailable
            reader, writer = await asyncio.open_unix_connection(self.path)
            try:
                writer.write(frame(self._encoder.encode(Hello(VERSION, self.process))))
                hello = await read_frame(reader, msgspec.msgpack.Decoder(Hello))
                if hello is None or hello.version != VERSION:
                    raise ConnectionError("the signer speaks another version")
            except BaseException:
                # Also where the request was given up meanwhile: its connection is nobody's.
                writer.close()
                raise
            self._link = _Link(writer)
            self._link.reading = spawn(self._read(reader, self._link), "replies of the signer")
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
        """Close the connection, for good."""
        self._closed = True
        if self._link is not None and self._link.reading is not None:
            self._link.writer.close()
            self._link.reading.cancel()


def _checked_reply(reply: Reply) -> Reply:
    """The reply; raises what its failure says."""
    failed = reply.failed
    if failed is None:
        return reply
    kind = KINDS.get(failed.kind)
    if kind is None:
        raise InternalFault(failed.message)
    raise kind(failed.message, code=failed.code, **failed.context)


def _read(command: Command[R], reply: Reply) -> R:
    """The answer, of the type that the command declares."""
    try:
        answer: R = _decoder(type(command)).decode(reply.answer)
    except msgspec.MsgspecError as problem:
        raise InternalFault(f"an answer to {type(command).__name__} does not decode: {problem}") from None
    return answer


@functools.cache
def _decoder(kind: type[Command[Any]]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(declaration_of(kind).reply)
