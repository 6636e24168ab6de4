"""The socket: who may speak, what may be said, and one place that turns problems into answers."""

import asyncio
import os
import socket
import struct
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from custody.kit import errors
from custody.kit.callers import Proof
from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.protocol import messages as m
from custody.protocol.framing import BadFrame, frame, read_frame
from signer import peers
from signer.context import Ask, Signer
from signer.idempotency import IdempotencyRace, earlier
from signer.proofs import BadProof, Proven
from signer.reveal import reveal
from signer.sealing import Tampered
from signer.table import TABLE, Row

log = logger(__name__)
_KINDS: tuple[tuple[type[errors.CustodyError], str], ...] = (
    (errors.Invalid, "BadOrder"), (errors.Unauthenticated, "BadProof"), (errors.Forbidden, "Forbidden"),
    (errors.NotFound, "NotFound"),
    (errors.Conflict, "Conflict"), (errors.Frozen, "Frozen"), (errors.TooMany, "TooMany"),
    (errors.Unavailable, "Unavailable"),
)  # fmt: skip
_RACE_TRIES = 3
# Of audit logs that are sealed no more, so many are named.
MOST_NAMED = 20
# Everybody may connect; who says nothing is not kept.
_HELLO_SECONDS = 5.0
# What runs when we are told to stop has this long.
STOP_SECONDS = 10.0
# Peers that hear that we leave hang up at once.
_LEAVE_SECONDS = 1.0


class Server:
    """Serves one socket to the peers of its table."""

    def __init__(
        self, signer: Signer, path: Path, table: peers.Table, peer_uids: dict[str, int], *, production: bool
    ) -> None:
        self._signer = signer
        self._path = path
        self._table = table
        self._peer_uids = peer_uids
        self._production = production
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Bind the socket under a name of its own and move it into place, so that nobody meets a half-made one."""
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(fresh), limit=m.MAX_FRAME)
        # Everybody may connect; SO_PEERCRED says who it is, and the folder is closed to other users.
        fresh.chmod(0o666 if self._peer_uids else 0o600)
        fresh.replace(self._path)

    async def stop(self) -> None:
        """Act on nothing new; what runs is committed and answered, and only then are the connections ended.

        What arrives meanwhile is not acted on. Its sender sees the connection end, and asks the next signer.
        """
        self._stopping = True
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for writer in self._writers:
            # Closed while something lies unread, a socket takes back what the other side has not read yet.
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
            decoder = msgspec.msgpack.Decoder(m.Request)
            while allowed is not None and (request := await read_frame(reader, decoder)) is not None:
                if self._stopping:
                    continue
                task = asyncio.get_running_loop().create_task(self._answer(request, allowed, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (OSError, BadFrame) as problem:
            self._signer.counters["bad_frames"] += 1
            log.warning("a connection was closed", extra={"uid": uid, "reason": str(problem)})
        finally:
            self._writers.discard(writer)
            writer.close()
            self._serving.discard(serving)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int
    ) -> frozenset[type] | None:
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = await read_frame(reader, msgspec.msgpack.Decoder(m.Hello))
        except TimeoutError:
            hello = None
        if hello is None:
            return None
        own = os.getuid()
        known = hello.process in peers.names_of(uid, self._table, self._peer_uids, own)
        if not known or hello.version != m.VERSION or (self._production and uid == own):
            self._signer.counters["refused_peers"] += 1
            log.warning(
                "a peer was refused", extra={"uid": uid, "claims": hello.process[:32], "version": hello.version}
            )
            return None
        writer.write(frame(msgspec.msgpack.encode(m.Hello(m.VERSION, "signer"))))
        return self._table[hello.process]

    async def _answer(self, request: m.Request, allowed: frozenset[type], writer: asyncio.StreamWriter) -> None:
        name = type(request.body).__name__
        self._signer.counters[name] += 1
        try:
            if request.v != m.VERSION or type(request.body) not in allowed:
                raise errors.Forbidden("This process may not send this message.", code="message_not_allowed")
            outcome, replayed = await self._tell_story(request)
        except errors.CustodyError as problem:
            outcome, replayed = _failed(problem), False
        except asyncpg.DiskFullError:
            # Nothing was written, so nothing is released (promise P3).
            log.error("the database has no room", extra={"request": name})
            full = "The database has no room to write; nothing was done. Tell the operator."
            outcome, replayed = m.Failed("Unavailable", "database_full", full), False
        except (*DatabaseAway, asyncpg.InsufficientResourcesError) as problem:
            # Too many connections or no memory: as little was done as with nobody there.
            log.warning(
                "the database is away",
                extra={"request_id": request.origin.request_id, "reason": type(problem).__name__},
            )
            outcome, replayed = (
                m.Failed(
                    "Unavailable", "database_unavailable", "The database is not reachable right now; try again shortly."
                ),
                False,
            )
        except Tampered:
            log.error("a sealed value did not open", extra={"request_id": request.origin.request_id, "request": name})
            outcome, replayed = (
                m.Failed(
                    "Unavailable",
                    "sealed_value_tampered",
                    "A sealed value is not what the signer wrote. Tell the operator.",
                ),
                False,
            )
        except Exception:  # the edge of the process: no detail leaves, the trace is logged without values
            log.exception("unexpected", extra={"request_id": request.origin.request_id, "request": name})
            outcome, replayed = m.Failed("Internal", "internal", "The signer had a fault."), False
        if not writer.is_closing():
            writer.write(_reply(request.n, outcome, replayed))

    async def _tell_story(self, request: m.Request) -> tuple[m.Outcome, bool]:
        looked_again = request.idempotency is None
        proven_again = False
        for _ in range(_RACE_TRIES):
            try:
                async with asyncio.timeout(min(max(request.deadline_ms, 0), 60_000) / 1000):
                    return await self._story(request)
            except IdempotencyRace:
                continue
            except (errors.Conflict, errors.NotFound):
                # Taken, gone or decided: by this request's own twin perhaps, whose answer is found the second time.
                if looked_again:
                    raise
                looked_again = True
            except asyncpg.PostgresError as problem:
                if problem.sqlstate == "CU001":
                    continue
                if problem.sqlstate == "CU002":
                    # A membership made anew under another version of the master key (docs/recovery.md) stands by
                    # another MAC; who was really removed is found out by the proof.
                    if proven_again:
                        raise errors.Unauthenticated from None
                    proven_again = True
                    continue
                raise
        raise errors.Unavailable

    async def _story(self, request: m.Request) -> tuple[m.Outcome, bool]:
        signer, body = self._signer, request.body
        if isinstance(body, m.PublicKeys):
            return m.Done({"keys": signer.minter.jwks() + signer.statement_keys.jwks(signer.public_url)}), False
        if isinstance(body, m.Status):
            said = {"version": m.VERSION, "counters": dict(signer.counters), "waiting": len(self._tasks)}
            return m.Done(said | {"stopped_logs": sorted(signer.audit_log.stopped)[:MOST_NAMED]}), False
        if isinstance(body, m.BroadcastOutcome):
            return await _note_outcome(signer, body, Ask(None, request.origin, None)), False
        if isinstance(body, m.RevealForRoute):
            return await reveal(signer, body, signer.proofs.agent(request.proof)), False
        row = TABLE[type(body)]
        caller = await self._proven(row, request.proof)
        # Without a caller there is nobody whose key it could be.
        key = request.idempotency if caller is not None else None
        ask: Ask[Any] = Ask(caller, request.origin, key, _shown(request.proof))
        if not row.replays_itself and (answer := await earlier(signer, ask)) is not None:
            return answer, True
        told = await row.story(signer, body, ask)
        return told if isinstance(told, tuple) else (told, False)

    async def _proven(self, row: Row, proof: Proof | None) -> Proven | None:
        """Who asks, from the proof alone; and only the kind of caller that this message takes."""
        if proof is None and (not row.by or row.proof_optional):
            return None
        if proof is None:
            raise BadProof
        row.check_kind(proof.kind)
        caller = await self._signer.proofs.anybody(proof)
        row.admit(caller)
        return caller


async def _note_outcome(signer: Signer, body: m.BroadcastOutcome, ask: Ask[None]) -> m.Outcome:
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            "SELECT outcome_write($1, $2, $3, $4)", body.tenant, body.tx_id, body.outcome, ask.origin_row
        )
    return m.Done({"result": result})


def _shown(proof: Proof | None) -> str:
    """The secret that a caller signs with, where it is the one he shows."""
    if proof is None:
        return ""
    return proof.value.rpartition(":")[2] if proof.kind == "app_client" else proof.value


def _reply(number: int, outcome: m.Outcome, replayed: bool) -> bytes:
    try:
        return frame(msgspec.msgpack.encode(m.Reply(number, outcome, replayed)))
    except BadFrame:
        return frame(
            msgspec.msgpack.encode(m.Reply(number, m.Failed("Internal", "internal", "The answer is too long.")))
        )


def _failed(problem: errors.CustodyError) -> m.Failed:
    kind = next((name for kind, name in _KINDS if isinstance(problem, kind)), "Internal")
    context = problem.context
    if isinstance(problem, errors.TooMany):
        context = {**context, "retry_after": problem.retry_after}
    return m.Failed(kind, problem.code, problem.message, context)  # type: ignore[arg-type]


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    credentials = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    uid: int = struct.unpack("3i", credentials)[1]
    return uid
