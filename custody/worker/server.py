"""The socket: who may speak, what may be said, and one place that turns problems into answers."""

import asyncio
import functools
import operator
import os
import socket
import struct
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from custody.kit import errors
from custody.kit.answers import Answered
from custody.kit.callers import Proof
from custody.kit.db import DatabaseAway, wait_for_replicas
from custody.kit.logs import logger
from custody.kit.tasks import spawn
from custody.protocol.command import Command, Declaration, Process, declaration_of
from custody.protocol.failures import kind_of
from custody.protocol.frames import MAX_FRAME, VERSION, Failed, Hello, Reply, Request
from custody.protocol.framing import BadFrame, frame, read_frame
from custody.protocol.refusals import BadProof, SealedValueTampered
from custody.worker import audited, peers
from custody.worker.admission import admit, check_kind
from custody.worker.call import Call
from custody.worker.handlers import Table
from custody.worker.idempotency import IdempotencyRace, earlier, pack
from custody.worker.proven import Proven, ProvenPlatform
from custody.worker.sealing import Tampered
from custody.worker.state import Worker

log = logger(__name__)
_RACE_TRIES = 3
# Any process may connect; a connection without a Hello in this time is closed.
_HELLO_SECONDS = 5.0
MAX_HELLO = 64  # bytes
# Running requests have this long to finish after the order to stop.
STOP_SECONDS = 10.0
# Peers hang up as soon as they see the end of the stream.
_LEAVE_SECONDS = 1.0


class Server[W: Worker]:
    """Serves one socket of a worker."""

    def __init__(  # noqa: PLR0913 - everything a socket consists of, said once at the start
        self,
        worker: W,
        name: str,
        path: Path,
        table: Table[W],
        processes: Collection[Process],
        peer_uids: dict[str, int],
        *,
        production: bool,
    ) -> None:
        self._worker = worker
        self._name = name
        self._path = path
        self._table = table
        self._allowed = {process: peers.allowed_commands(table, process) for process in processes}
        self._decoder: msgspec.msgpack.Decoder[Request[Command[Any]]] = decoder_of(table)
        self._peer_uids = peer_uids
        self._production = production
        self._stopping = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Bind the socket under a name of its own and move it into place, so that no peer finds a half-made one."""
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(fresh), limit=MAX_FRAME)
        # Any process may connect: SO_PEERCRED tells its user id, and the folder is closed to other users.
        fresh.chmod(0o666 if self._peer_uids else 0o600)
        fresh.replace(self._path)

    async def stop(self) -> None:
        """Refuse new requests, let running ones commit and answer, and then end the connections.

        A request that arrives meanwhile is dropped. Its sender sees the connection end and asks the next worker.
        """
        self._stopping = True
        if self._server is not None:
            self._server.close()
        if self._worker.tasks:
            await asyncio.wait(self._worker.tasks, timeout=STOP_SECONDS)
        for writer in self._writers:
            # Closing a socket with unread input discards the answers that the peer has not read yet; an end of the
            # stream does not.
            if not writer.is_closing():
                writer.write_eof()
        if self._serving:
            await asyncio.wait(self._serving, timeout=_LEAVE_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        uid = _peer_uid(writer)
        serving = asyncio.current_task()
        assert serving is not None  # noqa: S101 - a coroutine runs in one
        self._serving.add(serving)
        self._writers.add(writer)
        try:
            allowed = await self._greet(reader, writer, uid)
            while allowed is not None and (request := await read_frame(reader, self._decoder)) is not None:
                if self._stopping:
                    continue
                spawn(self._answer(request, allowed, writer), "request", among=self._worker.tasks)
        except (OSError, BadFrame) as problem:
            self._worker.counters["bad_frames"] += 1
            log.warning("a connection was closed", extra={"uid": uid, "reason": str(problem)})
        finally:
            self._writers.discard(writer)
            writer.close()
            self._serving.discard(serving)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int
    ) -> frozenset[type[Command[Any]]] | None:
        own = os.getuid()
        names = peers.names_of(uid, self._allowed, self._peer_uids, own)
        try:
            # A user that no process has is not waited for, and what they send is not collected.
            async with asyncio.timeout(_HELLO_SECONDS if names else 0):
                hello = await read_frame(reader, msgspec.msgpack.Decoder(Hello), MAX_HELLO)
        except TimeoutError:
            hello = None if names else Hello(VERSION, "")
        if hello is None:
            return None
        process = next((name for name in names if name == hello.process), None)
        if process is None or hello.version != VERSION or (self._production and uid == own):
            self._worker.counters["refused_peers"] += 1
            log.warning(
                "a peer was refused", extra={"uid": uid, "claims": hello.process[:32], "version": hello.version}
            )
            return None
        writer.write(frame(msgspec.msgpack.encode(Hello(VERSION, self._name))))
        return self._allowed[process]

    async def _answer(
        self, request: Request[Command[Any]], allowed: frozenset[type[Command[Any]]], writer: asyncio.StreamWriter
    ) -> None:
        name = type(request.body).__name__
        self._worker.counters[name] += 1
        try:
            if request.v != VERSION or type(request.body) not in allowed:
                raise errors.Forbidden("This process may not send this message.", code="message_not_allowed")
            answer, replayed = await self._in_time(request)
            if replayed:
                # It was read, which waits for no replica; who got it before may rely on it.
                async with asyncio.timeout(_deadline(request)), self._worker.pool.acquire() as connection:
                    await wait_for_replicas(connection)
            reply = Reply(request.n, msgspec.Raw(answer), replayed=replayed)
        except Exception as problem:  # the edge of the process: no detail leaves
            reply = Reply(request.n, failed=self._failure(problem, request.origin.request_id, name))
        if not writer.is_closing():
            writer.write(_frame(reply))

    def _failure(self, problem: Exception, request_id: str, name: str) -> Failed:
        """The failure for the sender, after a log line; neither contains a value of the request."""
        said = {"request_id": request_id, "request": name}
        if isinstance(problem, errors.CustodyError):
            return _failure(problem)
        if isinstance(problem, asyncpg.DiskFullError):
            # Nothing was written, so nothing is released (promise P3).
            self._worker.room.ran_out()
            log.error("the database has no room", extra=said)
            full = "The database has no free space; nothing was changed. Contact the operator."
            return Failed("Unavailable", "database_full", full)
        if isinstance(problem, TimeoutError):
            # Whoever asked knows it by their own clock; what was sent to the database goes on to its end.
            log.warning("a request did not end in time", extra=said)
            return Failed("Unavailable", "outcome_unknown", "The outcome is unknown: it was not known in time.")
        if isinstance(problem, (*DatabaseAway, asyncpg.InsufficientResourcesError)):
            # With too many connections or no memory nothing was done either, so the sender may retry.
            log.warning("the database is away", extra={**said, "reason": type(problem).__name__})
            said_so = "The database is not reachable. Retry shortly, what acts under the same Idempotency-Key: "
            return Failed("Unavailable", "database_unavailable", f"{said_so}it may have been done.")
        if isinstance(problem, Tampered):
            log.error("a sealed value did not open", extra=said)
            return _failure(SealedValueTampered())
        log.error("unexpected", extra=said, exc_info=problem)
        return Failed("Internal", "internal", f"Internal error of the {self._name}.")

    async def _in_time(self, request: Request[Command[Any]]) -> tuple[bytes, bool]:
        """The packed answer, and whether it is an earlier one; a request that lost a race is tried again."""
        looked_again = request.idempotency is None
        proven_again = False
        for _ in range(_RACE_TRIES):
            try:
                async with asyncio.timeout(_deadline(request)):
                    return await self._carried_out(request)
            except IdempotencyRace:
                continue
            except (errors.Conflict, errors.NotFound):
                # A concurrent copy of this request may have caused the conflict; the second try finds its answer.
                if looked_again:
                    raise
                looked_again = True
            except asyncpg.PostgresError as problem:
                if problem.sqlstate == "CU001":
                    continue
                if problem.sqlstate == "CU002":
                    # A membership written again under another version of the master key (docs/recovery.md) has another
                    # MAC. The second proof tells that from a membership that was removed.
                    if proven_again:
                        raise BadProof from None
                    proven_again = True
                    continue
                raise
        raise errors.Unavailable

    async def _carried_out(self, request: Request[Command[Any]]) -> tuple[bytes, bool]:
        command = request.body
        declared = declaration_of(type(command))
        caller = await self._prove(declared, request.proof)
        # An idempotency key belongs to a caller, so without one it is ignored.
        key = request.idempotency if caller is not None else None
        if request.authorization is not None and not declared.authorized:
            raise errors.Forbidden("This message takes no authorization.", code="authorization_not_allowed")
        call: Call[Any] = Call(caller, request.origin, key, _secret_sent(request.proof), request.authorization)
        if not declared.replays_itself and (earlier_answer := await earlier(self._worker, call)) is not None:
            return earlier_answer, True
        with audited.only(declared.audit):
            answer = await self._table[type(command)](self._worker, command, call)
        if isinstance(answer, Answered):
            return pack(answer.answer), answer.replayed
        return pack(answer), False

    async def _prove(self, declared: Declaration, proof: Proof | None) -> Proven | None:
        """The caller, from the proof alone; refuses a kind of caller that this command does not take."""
        if proof is None:
            if declared.proofs:
                raise BadProof
            return None
        check_kind(declared, proof.kind)
        caller = await self._worker.proofs.anybody(proof)
        admit(declared, caller)
        if not isinstance(caller, ProvenPlatform):
            self._worker.serve(caller.tenant)
        return caller


def _secret_sent(proof: Proof | None) -> str:
    """The secret that a caller signs with, if it is the one they sent."""
    if proof is None:
        return ""
    return proof.value.rpartition(":")[2] if proof.kind == "app_client" else proof.value


def _deadline(request: Request[Command[Any]]) -> float:
    return min(max(request.deadline_ms, 0), 60_000) / 1000


def _frame(reply: Reply) -> bytes:
    try:
        return frame(msgspec.msgpack.encode(reply))
    except BadFrame:
        failed = Failed("Internal", "internal", "The response is too long.")
        return frame(msgspec.msgpack.encode(Reply(reply.n, failed=failed)))


def _failure(problem: errors.CustodyError) -> Failed:
    context = problem.context
    if isinstance(problem, errors.TooMany):
        context = {**context, "retry_after": problem.retry_after}
    return Failed(kind_of(problem), problem.code, problem.message, context)


def decoder_of(commands: Iterable[type[Command[Any]]]) -> Any:
    """Decodes requests with one of these commands, and nothing else."""
    return msgspec.msgpack.Decoder(Request[functools.reduce(operator.or_, commands)])  # type: ignore[misc] # made at run time


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    credentials = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    uid: int = struct.unpack("3i", credentials)[1]
    return uid
