"""One connection of an agent: its bytes, its upstream connections, and the order in which events happen.

Takes the place of mitmproxy's own handler, which runs every hook as a task of its own (a third of its time), dials
whatever it is asked to, bounds nothing, and may leave a socket open when it is cancelled at the wrong moment.
"""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from mitmproxy import http
from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.proxy import commands, events, layer, mode_specs, server
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HTTPMode

from custody.kit import ids
from custody.kit.fair_slots import Bounds, FairSlots
from custody.kit.jwt import AgentClaims
from custody.kit.logs import logger
from custody.kit.tasks import leave_to_caller, spawn
from proxy_addon import metrics, refuse
from proxy_addon.dial import Dialler, NotDialled
from proxy_addon.exchange import Exchange, Form, Limits, Ticket
from proxy_addon.http2 import PREFACE
from proxy_addon.lanes import Lane
from proxy_addon.mitm.http1 import WakeForAnswer
from proxy_addon.mitm.http2 import AgentHttp2, Sleep
from proxy_addon.mitm.streams import Layer, LightContext, Upstream
from proxy_addon.mitm.tls import AgentTls
from proxy_addon.peer import Peer
from proxy_addon.refuse import Refusal
from proxy_addon.turns import MAX_TURN_SECONDS, Payer, Turns

log = logger("proxy")
REGULAR = mode_specs.ProxyMode.parse("regular")
# After our last word we go on reading for a moment, or the reset that follows unread bytes could overtake it.
_LINGER_SECONDS = 1.0
_LINGER_BYTES = 4 * 2**20
# Connections that are read on at once; the others wait, and end with their time.
MAX_LINGERING = 16
# A head must be complete in this time; a connection without a request may be idle this long.
_HEAD_SECONDS = 30.0
# The library allows itself 30 s for the database and 10 s for the signer; this is beyond both.
_DECISION_SECONDS = 60.0
_LONG_SECONDS = 1.0
# What an overdue exchange has to come to its end in an orderly way.
_LAST_SECONDS = 5.0
_HIGH_WATER = 64 * 1024
# Bytes of a connection that are looked at in one go: about a millisecond's work with a hundred forms to mask. Of an
# answer that costs less, as most do, the larger part: each go has others wait for it, and many streams are many goes.
MAX_READ = 16 * 1024
MAX_QUICK_READ = 64 * 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9_\-.:]{1,128}")
Hooks = Mapping[str, Callable[..., Any]]
ServeLane = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Peer], None]
# Bytes of bodies that are held until they are whole: of all, of an agent, of a tenant; the last are for who has few.
MAX_HELD, MAX_HELD_OF_AGENT, MAX_HELD_OF_TENANT = 96 * 2**20, 16 * 2**20, 32 * 2**20
HELD_KEPT_BACK, FEW_HELD = 32 * 2**20, 2 * 2**20
HELD = Bounds(MAX_HELD, MAX_HELD_OF_AGENT, MAX_HELD_OF_TENANT, reserve=HELD_KEPT_BACK, few=FEW_HELD)


class ConnectionServices(msgspec.Struct, frozen=True):
    """The services shared by a process' connections. `ended` hears of each exchange once, `gone` of each connection."""

    options: Any
    hooks: Hooks
    dialler: Dialler
    limits: Limits
    ended: Callable[[Exchange], None]
    gone: Callable[[Peer], None]
    held: FairSlots
    # Told of an upstream that speaks HTTP/2 and nothing else.
    only_http2: Callable[[Ticket], None]
    turns: Turns = msgspec.field(default_factory=Turns)
    # Set once the process was told to stop.
    leaving: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    lingering: asyncio.Semaphore = msgspec.field(default_factory=lambda: asyncio.Semaphore(MAX_LINGERING))


class Handler(server.LiveConnectionHandler):
    """Serves one connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        services: ConnectionServices,
        serve_lane: ServeLane,
        tunnel: Peer | None = None,
    ) -> None:
        """`serve_lane` serves a stream of HTTP/2 as a connection; `tunnel` is the one that this is a lane of."""
        super().__init__(reader, writer, services.options, REGULAR)
        self.services = services
        self.limits = services.limits
        self.peer = Peer(str(self.client.peername[0]), lambda: self.cut(reset=False))
        self.closing = False
        self.exchange: Exchange | None = None
        self.is_lane = tunnel is not None
        mode = HTTPMode.regular
        if tunnel is not None:
            mode = HTTPMode.transparent
            self.peer.token, self.peer.tunnel, self.peer.until = tunnel.token, tunnel.tunnel, tunnel.until
        self._serve_lane = serve_lane
        # The layer of its streams, if it speaks HTTP/2; its wish to be woken; whether somebody is about to.
        self.http2: AgentHttp2 | None = None
        self._sleep: Sleep | None = None
        self._waking = False
        self.layer = Layer(LightContext.of(self.layer.context), mode, self)
        self.timeout_watchdog = _NoWatchdog()  # type: ignore[assignment]
        self._events: deque[events.Event] = deque()
        self._running = False
        self._unsent: dict[Connection, list[bytes]] = {}
        self._hooks: set[asyncio.Task[Any]] = set()
        self._deadline = time.monotonic() + _HEAD_SECONDS
        self._lingering = False
        # Whom the work on this connection is counted to.
        self._payer: Payer = next(iter(tunnel.agents)) if tunnel and tunnel.agents else ("", self.peer.address)
        # Parsers that have more to read than one go may; meanwhile nothing further is read.
        self._wakeups: deque[commands.RequestWakeup] = deque()
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        # Not set while a request waits for a decision or a connection: what is not read need not be kept.
        self.reading = asyncio.Event()
        self.reading.set()

    # ---- one connection

    async def handle_client(self) -> None:
        """Serve until the agent or we have had enough; afterwards nothing of it is open."""
        try:
            await self.server_event(events.Start())
            reading = spawn(self._serve_client(), "connection")
            self.transports[self.client].handler = reading
            await asyncio.wait([reading])
        finally:
            for task in [io.handler for io in self.transports.values() if io.handler] + list(self._hooks):
                task.cancel()
            for io in self.transports.values():
                if io.writer is not None:
                    io.writer.close()
            if self.http2 is not None:
                self.http2.lose()
            if self.exchange is not None:
                self.end(self.exchange, abandoned=True)
            self.services.gone(self.peer)

    async def _serve_client(self) -> None:
        try:
            await self.handle_connection(self.client)
        except asyncio.CancelledError:
            if not self._lingering:
                raise

    async def handle_connection(self, connection: Connection) -> None:
        """Read one side to its end."""
        if connection is not self.client:
            await self._handle_upstream(connection)
            return
        reader, writer = self.transports[connection].reader, self.transports[connection].writer
        assert isinstance(reader, asyncio.StreamReader)  # noqa: S101 - our own listener made it
        assert isinstance(writer, asyncio.StreamWriter)  # noqa: S101
        try:
            while True:
                data = await reader.read(MAX_READ)
                if not data:
                    break
                if self._lingering:
                    await self._read_on(reader, data)
                    break
                await self._in_turn(events.DataReceived(connection, data))
                if not self._lingering:
                    await self._drain(of_agent=False)
                    if self.http2 is not None:
                        # It has us answer pings and settings, so it has to take the answers.
                        await self._drain(of_agent=True)
                    await self.reading.wait()
        except OSError:
            pass
        finally:
            connection.state = ConnectionState.CLOSED
            await self.server_event(events.ConnectionClosed(connection))
            writer.close()
            self.transports.pop(connection, None)

    async def _handle_upstream(self, connection: Connection) -> None:
        """As mitmproxy does it, but in turns."""
        io = self.transports[connection]
        assert isinstance(io.reader, asyncio.StreamReader)  # noqa: S101 - the dialler made it
        cancelled = None
        most = MAX_READ
        try:
            while data := await io.reader.read(most):
                seconds = await self._in_turn(events.DataReceived(connection, data))
                # As long as so much more of the same fits into a turn.
                most = MAX_QUICK_READ if seconds * MAX_QUICK_READ < MAX_TURN_SECONDS * len(data) else MAX_READ
                # Not for what goes to the upstream: one that reads no more may still have something to say.
                await self._drain(of_agent=True)
        except OSError:
            pass
        except asyncio.CancelledError as given:
            cancelled = given
        if cancelled is None:
            connection.state &= ~ConnectionState.CAN_READ
        else:
            connection.state = ConnectionState.CLOSED
        self._hear(events.ConnectionClosed(connection))
        if connection.state is ConnectionState.CAN_WRITE:
            # The other side can still receive; closing the connection cancels this.
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as given:
                cancelled = given
        self.transports.pop(connection, None)
        if cancelled is not None:
            raise cancelled

    async def _read_on(self, reader: asyncio.StreamReader, data: bytes) -> None:
        """Drop what comes after our last word. Few do so at once: who is refused takes no time of who is served."""
        async with self.services.lingering:
            lingered = 0
            while data and (lingered := lingered + len(data)) < _LINGER_BYTES:
                # What has come already is read without a pause, and others want the loop too.
                await asyncio.sleep(0)
                data = await reader.read(MAX_READ)

    # ---- events and commands

    async def _in_turn(self, event: events.Event) -> float:
        """Have an event heard when it is this agent's turn, and all that follows from it before anything else is.

        The seconds that it took to hear it.
        """
        spent = 0.0

        def hear() -> None:
            nonlocal spent
            began = time.perf_counter()
            self._hear(event)
            spent = time.perf_counter() - began

        await self.services.turns.do(self._whose(), hear)
        await self._caught_up.wait()
        return spent

    async def _catch_up(self) -> None:
        """Let the parsers read on, one go each turn, until nothing is left of what was received."""
        try:
            while self._wakeups and not self._lingering:
                of_answer = isinstance(self._wakeups[0], WakeForAnswer)
                await self.services.turns.do(self._whose(), self._wake)
                if not of_answer:
                    await self._drain(of_agent=False)
                await self._drain(of_agent=True)
        finally:
            self._wakeups.clear()
            self._caught_up.set()

    def _wake(self) -> None:
        self._hear(events.Wakeup(self._wakeups.popleft()))

    def _whose(self) -> Payer:
        if self.exchange is not None and (claims := self.exchange.claims) is not None:
            self._payer = claims.tid, claims.sub
        return self._payer

    async def server_event(self, event: events.Event) -> None:
        """The same at once; mitmproxy's name for it."""
        self._hear(event)

    def _hear(self, event: events.Event) -> None:
        """Let the layers hear of an event, and do what they say. Nothing waits in here: order is the order of calls."""
        self._events.append(event)
        if self._running:
            return
        self._running = True
        try:
            while self._events:
                for command in self.layer.handle_event(self._events.popleft()):
                    self._obey(command)
        except Exception:
            # The layers' state is unknown now; the one safe thing is to end the connection.
            log.exception("a fault while handling a connection")
            self._events.clear()
            self.cut(reset=True)
        finally:
            self._running = False
        self._flush()

    def _obey(self, command: commands.Command) -> None:
        if isinstance(command, commands.SendData):
            if command.connection in self.transports:
                self._unsent.setdefault(command.connection, []).append(command.data)
        elif isinstance(command, commands.StartHook):
            self._start_hook(command)
        elif isinstance(command, Sleep):
            self._sleep = command
        elif isinstance(command, commands.RequestWakeup):
            self._wakeups.append(command)
            if self._caught_up.is_set():
                self._caught_up.clear()
                spawn(self._catch_up(), "catch up", among=self._hooks)
        elif isinstance(command, commands.OpenConnection):
            task = spawn(self.open_connection(command), "open connection")
            self.transports[command.connection] = server.ConnectionIO(handler=task)
        elif isinstance(command, commands.CloseConnection):
            self._flush()
            half = isinstance(command, commands.CloseTcpConnection) and command.half_close
            if command.connection is self.client:
                self._say_goodbye()
            elif command.connection in self.transports:
                self.close_connection(command.connection, half)
        elif not isinstance(command, commands.Log):
            raise RuntimeError(f"unexpected command {type(command).__name__}")

    def _start_hook(self, hook: commands.StartHook) -> None:
        """Run a hook now; only one that must wait (for the database, the signer) becomes a task."""
        run = self.services.hooks.get(hook.name)
        found = run(self, *hook.args()) if run is not None else None
        if found is None:
            self._hook_ended(hook)
            return
        task = spawn(found, hook.name, among=self._hooks, on_failure=leave_to_caller, eager=True)
        if task.done():
            task.result()
            self._hook_ended(hook)
            return
        self.reading.clear()
        task.add_done_callback(lambda ended: self._hook_came_back(hook, ended))

    def _hook_ended(self, hook: commands.StartHook) -> None:
        if hook.blocking:
            self._events.append(events.HookCompleted(hook))

    def _hook_came_back(self, hook: commands.StartHook, task: asyncio.Task[Any]) -> None:
        self.reading.set()
        if task.cancelled():
            return
        if problem := task.exception():
            log.error("a hook failed", exc_info=problem)
            self.cut(reset=True)
            return
        self._hear(events.HookCompleted(hook))

    def _flush(self) -> None:
        for connection, pieces in self._unsent.items():
            io = self.transports.get(connection)
            if io is not None and isinstance(io.writer, asyncio.StreamWriter) and not io.writer.is_closing():
                io.writer.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        self._unsent.clear()

    def _say_goodbye(self) -> None:
        """Close our half, and read on for a moment so that what we said arrives."""
        io = self.transports.get(self.client)
        if io is None or self._lingering or not isinstance(io.writer, asyncio.StreamWriter):
            return
        self._lingering, self.closing = True, True
        self._deadline = time.monotonic() + _LINGER_SECONDS
        self.client.state &= ~ConnectionState.CAN_WRITE
        with contextlib.suppress(OSError):
            io.writer.write_eof()

    def cut(self, *, reset: bool) -> None:
        """End the agent's connection now; with `reset` so that nobody takes what was sent for all there is."""
        io = self.transports.get(self.client)
        if io is None or not isinstance(io.writer, asyncio.StreamWriter):
            return
        self.closing = True
        if reset:
            raw = io.writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                if raw is not None:
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            io.writer.transport.abort()
        else:
            self._flush()
            io.writer.close()
        if io.handler is not None:
            io.handler.cancel("cut")

    async def drain_writers(self) -> None:
        """Wait while any side is slow to take what we send it."""
        await self._drain(of_agent=False)
        await self._drain(of_agent=True)

    async def _drain(self, *, of_agent: bool) -> None:
        for connection, io in list(self.transports.items()):
            if (connection is self.client) is not of_agent or not isinstance(io.writer, asyncio.StreamWriter):
                continue
            if io.writer.transport.get_write_buffer_size() > _HIGH_WATER:
                try:
                    await io.writer.drain()
                except OSError as problem:
                    # An upstream's end is heard by its reader, with the last that it said.
                    if of_agent and io.handler is not None:
                        io.handler.cancel(f"the agent is gone: {problem}")

    # ---- streams of HTTP/2

    def open_lane(self) -> Lane:
        """Open a lane; it counts as a connection of its own."""
        lane = Lane(self.peer.address, self.wake)
        self._serve_lane(lane.reader, lane.writer, self.peer)
        return lane

    def wake(self, lane: Lane) -> None:
        """Have the layer of streams woken, because a lane has something to say."""
        if self.http2 is not None:
            self.http2.mark(lane)
            if not self._waking:
                self._waking = True
                spawn(self._pump(), "streams", among=self._hooks)

    async def _pump(self) -> None:
        try:
            while self.http2 is not None and self.http2.ready and not self._lingering:
                await self._drain(of_agent=True)
                await self.services.turns.do(self._whose(), self._rouse)
        finally:
            self._waking = False

    def _rouse(self) -> None:
        sleep, self._sleep = self._sleep, None
        if sleep is not None:
            self._hear(events.Wakeup(sleep))

    def note_streams(self, count: int) -> None:
        """Take note of how many streams are under way: only without any it may be idle for too long."""
        self.peer.busy = count > 0
        self._deadline = time.monotonic() + self.limits.idle_seconds

    def speak_http2(self, context: Context) -> AgentHttp2:
        """Have the tunnel speak HTTP/2."""
        self._payer = next(iter(self.peer.agents), self._payer)
        self.http2 = AgentHttp2(context, self)
        return self.http2

    # ---- upstream connections

    async def open_connection(self, command: commands.OpenConnection) -> None:
        """Dial with a ticket; without one nothing is dialled."""
        connection = command.connection
        try:
            if not isinstance(connection, Upstream) or connection.ticket is None:
                raise NotDialled(refuse.INTERNAL)
            reader, writer = await self.services.dialler.dial(connection.ticket)
        except NotDialled as problem:
            if isinstance(connection, Upstream) and connection.ticket is not None:
                connection.ticket.exchange.failure = problem.refusal
            self.transports.pop(connection, None)
            await self.server_event(events.OpenConnectionCompleted(command, problem.refusal.code))
            return
        except asyncio.CancelledError:
            self.transports.pop(connection, None)
            await self.server_event(events.OpenConnectionCompleted(command, "cancelled"))
            raise
        connection.state = ConnectionState.OPEN
        connection.timestamp_start = time.time()  # noqa: TID251 - the library wants it so
        connection.peername = writer.get_extra_info("peername")
        connection.sockname = writer.get_extra_info("sockname")
        self.transports[connection] = server.ConnectionIO(asyncio.current_task(), reader, writer)
        try:
            await self.server_event(events.OpenConnectionCompleted(command, None))
            await self.handle_connection(connection)
        finally:
            writer.close()

    # ---- exchanges

    def begin(self, form: Form, request: http.Request) -> Exchange:
        """An exchange for a request that has just come."""
        self.peer.requests += 1
        self.peer.busy = True
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else ids.new_uuid()
        method = request.data.method.decode("ascii", "replace")
        exchange = self.exchange = Exchange(form, method, request_id, self.peer.address)
        agent = request.headers.get("user-agent")
        # Bytes that are no text must not keep the audit row from being written.
        exchange.user_agent = agent.encode("utf-8", "replace").decode()[:256] if agent else None
        exchange.http10 = request.data.http_version == b"HTTP/1.0"
        exchange.agent_closes = exchange.http10 or "close" in request.headers.get("connection", "").lower()
        exchange.allow(_DECISION_SECONDS)
        return exchange

    def end(self, exchange: Exchange, *, abandoned: bool = False) -> None:
        """An exchange is over, once; `abandoned` when it did not come to its proper end."""
        if exchange.ended:
            return
        exchange.ended, exchange.abandoned = True, abandoned
        if self.exchange is exchange:
            self.exchange, self.peer.busy = None, False
        if exchange.held and exchange.claims is not None:
            self.services.held.give_back((exchange.claims.tid, exchange.claims.sub), exchange.held)
            exchange.held = 0
        # A tunnel's handshake, too, must come soon.
        known = self.peer.agents and exchange.form != "connect"
        self._deadline = time.monotonic() + (self.limits.idle_seconds if known else _HEAD_SECONDS)
        self.services.ended(exchange)

    def hold(self, exchange: Exchange, count: int) -> Refusal | None:
        """Count bytes of a body that is held until the exchange is over; why they cannot be, or None."""
        claims = exchange.claims
        lack = self.services.held.take((claims.tid, claims.sub), count) if claims is not None else "room"
        if lack is None:
            exchange.held += count
            return None
        return refuse.TOO_MUCH_HELD if lack == "share" else refuse.CROWDED

    def keep(self, exchange: Exchange, count: int) -> bool:
        """Count bytes of an answer that is looked into; fewer where `count` is below nothing. Says if there is room."""
        if count > 0:
            return self.hold(exchange, count) is None
        if exchange.claims is not None and exchange.held:
            self.services.held.give_back((exchange.claims.tid, exchange.claims.sub), -count)
            exchange.held += count
        return True

    def note_http2(self, ticket: Ticket) -> None:
        """Take note that an upstream speaks nothing but HTTP/2."""
        ticket.http2 = True
        self.services.only_http2(ticket)

    def refused_head(self, refusal: Refusal) -> str:
        """Count what was refused before it was a request; gives an id for the answer."""
        metrics.requests(refusal.status, refusal.code).inc()
        return ids.new_uuid()

    def look_at_the_clock(self, now: float) -> None:
        """Called a few times a second: end what is overdue."""
        exchange = self.exchange
        if exchange is not None and not self._lingering:
            if exchange.deadline < now and not exchange.overdue:
                exchange.overdue = True
                self._give_up(exchange)
            elif exchange.deadline + _LAST_SECONDS < now:
                self.cut(reset=True)
        elif self.http2 is not None and self.peer.busy and not self._lingering:
            # Each of its streams has its own time, and whose is over has a while for its agent to take the rest.
            if self.http2.give_up(now - self.limits.idle_seconds):
                self._rouse()
        elif min(self._deadline, self.peer.until) < now or (self.closing and not self._lingering):
            self.cut(reset=False)

    @property
    def leaving(self) -> bool:
        """True once the process was told to stop, though it may serve for a while."""
        return self.services.leaving.is_set()

    @property
    def runs_long_for(self) -> AgentClaims | None:
        """Say whose request has been on its way to an upstream for a while, if one has."""
        exchange = self.exchange
        if exchange is None or exchange.ticket is None or exchange.seconds < _LONG_SECONDS:
            return None
        return exchange.claims

    def revoke(self, refusal: Refusal) -> None:
        """The agent's token no longer holds: what is under way for it ends now."""
        if self.exchange is not None:
            self.exchange.refusal = refusal
            self.end(self.exchange, abandoned=True)
            self.cut(reset=True)

    def _give_up(self, exchange: Exchange) -> None:
        """Close the upstream under an overdue exchange; its stream then tells the agent, or cuts it off."""
        under_way = [
            io.handler
            for connection, io in self.transports.items()
            if isinstance(connection, Upstream) and not connection.idle and io.handler is not None
        ]
        if exchange.answered or not under_way:
            self.cut(reset=True)
        for task in under_way:
            task.cancel("overdue")

    def drain(self) -> None:
        """Take no further request; an idle connection ends now."""
        self.closing = True
        if self.http2 is not None:
            self.http2.leave()
            self._rouse()
        elif self.exchange is None:
            self.cut(reset=False)

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Never called: hooks run in `_start_hook`. Should mitmproxy come here one day, the connection ends."""
        raise RuntimeError(f"a hook went the wrong way: {hook.name}")

    def log(self, message: str, level: int = 0, exc_info: Any = None) -> None:
        """mitmproxy's chatter names hosts and bytes; we log what matters ourselves."""


class _NoWatchdog:
    """mitmproxy starts a timer for each connection; one clock for all of them does."""

    def register_activity(self) -> None:
        """Nothing to do."""


def next_layer(handler: Handler, wish: layer.NextLayer) -> None:
    """Choose what comes inside a tunnel: TLS with our certificate, then HTTP. Raw bytes are never forwarded."""
    data: bytes = wish.data_client()  # type: ignore[no-untyped-call]
    looks_like_tls = data[:1] == b"\x16" and (len(data) < 3 or starts_like_tls_record(data))
    if data[:1] == b"\x16" and not looks_like_tls:
        handler.cut(reset=False)
        return
    if not wish.context.client.tls_established and data[:1] == b"\x16":
        if len(data) > 2:
            wish.layer = AgentTls(wish.context)
        return
    if wish.context.client.alpn == b"h2" or data == PREFACE[: len(data)] or data.startswith(PREFACE):
        if wish.context.client.alpn == b"h2" or len(data) >= len(PREFACE):
            wish.layer = handler.speak_http2(wish.context)
        return
    wish.layer = Layer(wish.context, HTTPMode.transparent, handler)
