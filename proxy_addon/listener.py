"""The port: workers share it, connections are bounded, and stopping lets what runs come to its end."""

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Awaitable, Callable

from custody.kit.jwt import AgentClaims
from custody.kit.logs import logger
from custody.kit.tasks import spawn
from proxy_addon import metrics
from proxy_addon.crowd import CROWDED, MAX_CONNECTIONS, Crowd
from proxy_addon.mitm.handler import ConnectionServices, Handler
from proxy_addon.peer import Peer
from proxy_addon.refuse import Refusal

log = logger("proxy")
RefusedSince = Callable[[AgentClaims], Awaitable[Refusal | None]]
DRAIN_SECONDS = 10.0
_TICK_SECONDS = 0.25
_AGENTS_SECONDS = 0.5
# Connections that wait in the kernel, and those that one turn of the loop takes of them: to begin one is work too.
_BACKLOG, MAX_ACCEPTED_AT_ONCE = 1024, 8


class Listener:
    """Accepts connections and hands each to a handler."""

    def __init__(
        self, services: ConnectionServices, crowd: Crowd, refused_since: RefusedSince, host: str, port: int
    ) -> None:
        """`refused_since` says why an agent whose request is under way would be refused by now, or None."""
        self._services = services
        self._crowd = crowd
        self._refused_since = refused_since
        self._host = host
        self._port = port
        # In the order in which they came.
        self._handlers: dict[Handler, None] = {}
        self._server: asyncio.Server | None = None
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def open(self) -> None:
        """Listen; from now on we count as ready."""
        _raise_descriptor_limit()
        listening = _socket(self._host, self._port)
        # The library takes as many at one go as it lets wait, so the kernel is told the longer queue afterwards.
        self._server = await asyncio.start_server(
            self._serve, sock=listening, limit=2**16, backlog=MAX_ACCEPTED_AT_ONCE
        )
        listening.listen(_BACKLOG)

    async def watch_the_clock(self) -> None:
        """End what is overdue, a few times a second, until cancelled; no request has a timer of its own."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            for handler in list(self._handlers):
                handler.look_at_the_clock(now)

    async def watch_the_agents(self) -> None:
        """End what runs long for an agent that may no longer ask, twice a second until cancelled."""
        while True:
            await asyncio.sleep(_AGENTS_SECONDS)
            running: dict[AgentClaims, list[Handler]] = {}
            for handler in self._handlers:
                if (claims := handler.runs_long_for) is not None:
                    running.setdefault(claims, []).append(handler)
            # All at once: one slow look-up must not keep the others waiting.
            await asyncio.gather(*(self._look_at(claims, handlers) for claims, handlers in running.items()))

    async def _look_at(self, claims: AgentClaims, handlers: list[Handler]) -> None:
        refusal = await self._refused_since(claims)
        if refusal is not None:
            for handler in handlers:
                if handler.runs_long_for == claims:
                    handler.revoke(refusal)

    async def close(self) -> None:
        """Accept nothing more, let running exchanges end, cut what takes too long."""
        self._draining = True
        if self._server is not None:
            self._server.close()
        for handler in list(self._handlers):
            handler.drain()
        await self._until_empty(DRAIN_SECONDS)
        for handler in list(self._handlers):
            handler.cut(reset=True)
        await self._until_empty(1.0)

    async def _until_empty(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    def _serve_lane(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Peer) -> None:
        """Serve a stream of HTTP/2 in a tunnel as a connection of its own."""
        spawn(self._serve(reader, writer, tunnel), "stream")

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Peer | None = None
    ) -> None:
        if len(self._handlers) >= CROWDED:
            self._make_room()
        if self._draining or len(self._handlers) >= MAX_CONNECTIONS:
            metrics.TURNED_AWAY.inc()
            writer.close()
            return
        handler = Handler(reader, writer, self._services, self._serve_lane, tunnel)
        self._handlers[handler] = None
        self._crowd.came(handler.peer)
        self._empty.clear()
        metrics.CONNECTIONS.inc()
        try:
            await handler.handle_client()
        finally:
            self._handlers.pop(handler, None)
            if not self._handlers:
                self._empty.set()
            metrics.CONNECTIONS.dec()

    def _make_room(self) -> None:
        """End a connection: who only holds connections must not shut others out."""
        if (peer := self._crowd.give_way()) is not None:
            metrics.TURNED_AWAY.inc()
            peer.end()


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP, because asyncio sets TCP_NODELAY only then; without it each small answer waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind((host, port))
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def _raise_descriptor_limit() -> None:
    """Two descriptors an exchange: the usual soft limit of 1,024 is too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MAX_CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * MAX_CONNECTIONS)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
