"""Connections that are either open or closed: a cancelled caller leaves none half open.

What a screen asks is given up when one looks elsewhere, perhaps in the middle of connecting; there anyio loses the
socket. So connecting is never cut off, and a connection that nobody waits for any more is closed.
"""

import asyncio
import ipaddress
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import httpcore

from console.tasks import spawn


class Connections(httpcore.AnyIOBackend):
    """Connections of the client."""

    def __init__(self) -> None:
        super().__init__()
        self._connecting: set[asyncio.Task[Any]] = set()
        self._unwanted: set[asyncio.Task[Any]] = set()

    def serve(self, client: Any) -> None:
        """Make an httpx client connect this way. It has no setting for that; httpcore, below it, has."""
        pool = getattr(client._transport, "_pool", None)
        if not isinstance(pool, httpcore.AsyncConnectionPool):
            raise TypeError("this httpx keeps its connections elsewhere")
        pool._network_backend = self

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        connecting = spawn(
            super().connect_tcp(host, port, timeout, local_address, socket_options), "connect", self._connecting
        )
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            spawn(_close(connecting), "close", self._unwanted)
            raise

    async def settle(self) -> None:
        """Come back when nothing unwanted is open any more."""
        await asyncio.gather(*self._unwanted)


async def _close(connecting: asyncio.Future[httpcore.AsyncNetworkStream]) -> None:
    try:
        stream = await connecting
    except (httpcore.NetworkError, httpcore.TimeoutException):
        return
    await stream.aclose()


def is_loopback(url: str) -> bool:
    """Tell whether an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
