"""The port: workers share it, connections are bounded, and stopping lets what runs come to its end."""

import asyncio
import contextlib
import resource
import socket
import time

from custody.kit.logs import logger
from proxy_addon import metrics
from proxy_addon.mitm.handler import Desk, Handler

log = logger("proxy")
MAX_CONNECTIONS = 4096
DRAIN_SECONDS = 10.0
_TICK_SECONDS = 0.25
_BACKLOG = 1024


class Listener:
    """Accepts connections and hands each to a handler."""

    def __init__(self, desk: Desk, host: str, port: int) -> None:
        self._desk = desk
        self._host = host
        self._port = port
        self._handlers: set[Handler] = set()
        self._server: asyncio.Server | None = None
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    async def open(self) -> None:
        """Listen; from now on we count as ready."""
        _raise_descriptor_limit()
        self._server = await asyncio.start_server(self._serve, sock=_socket(self._host, self._port), limit=2**16)

    async def watch_the_clock(self) -> None:
        """End what is overdue, a few times a second, until cancelled; no request has a timer of its own."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            for handler in list(self._handlers):
                handler.look_at_the_clock(now)

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
        if self._draining or len(self._handlers) >= MAX_CONNECTIONS:
            writer.close()
            return
        handler = Handler(reader, writer, self._desk)
        self._handlers.add(handler)
        self._empty.clear()
        metrics.CONNECTIONS.inc()
        try:
            await handler.handle_client()
        finally:
            self._handlers.discard(handler)
            if not self._handlers:
                self._empty.set()
            metrics.CONNECTIONS.dec()


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
