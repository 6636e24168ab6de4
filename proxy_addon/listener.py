"""The port: workers share it, connections are bounded, and stopping lets what runs come to its end."""

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Awaitable, Callable

from custody.kit.jwt import AgentClaims
from custody.kit.logs import logger
from proxy_addon import metrics
from proxy_addon.mitm.handler import Desk, Handler
from proxy_addon.refuse import Refusal

log = logger("proxy")
RefusedSince = Callable[[AgentClaims], Awaitable[Refusal | None]]
MAX_CONNECTIONS = 4096
CROWDED = 3 * MAX_CONNECTIONS // 4
DRAIN_SECONDS = 10.0
_TICK_SECONDS = 0.25
_AGENTS_SECONDS = 0.5
_BACKLOG = 1024


class Listener:
    """Accepts connections and hands each to a handler."""

    def __init__(self, desk: Desk, refused_since: RefusedSince, host: str, port: int) -> None:
        """`refused_since` says why an agent whose request is under way would be refused by now, or None."""
        self._desk = desk
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
        self._server = await asyncio.start_server(
            self._serve, sock=_socket(self._host, self._port), limit=2**16, backlog=_BACKLOG
        )

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

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._handlers) >= CROWDED:
            self._make_room()
        if self._draining or len(self._handlers) >= MAX_CONNECTIONS:
            writer.close()
            return
        handler = Handler(reader, writer, self._desk)
        self._handlers[handler] = None
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
        """End the oldest connection that has shown no token: who only holds connections must not shut others out."""
        idle = (handler for handler in self._handlers if not handler.peer.agents and not handler.closing)
        if (oldest := next(idle, None)) is not None:
            oldest.cut(reset=False)


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
