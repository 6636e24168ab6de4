"""A wire between a process and Postgres that passes on what Postgres says, but never that it hung up.

So does any network for a moment: the last word of a server that ends a connection arrives before its goodbye.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit, urlunsplit

_SOCKET = ".s.PGSQL.5432"


class SilentWire:
    """Connections to one Postgres; `hung_up` is set when it has ended one."""

    def __init__(self, postgres: str) -> None:
        self._postgres = postgres
        self.hung_up = asyncio.Event()
        self.over = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass everything on until the end of the test."""
        up_reader, up_writer = await asyncio.open_unix_connection(self._postgres)
        asking = asyncio.ensure_future(_pass_on(reader, up_writer))
        await _pass_on(up_reader, writer)
        # The client shares this loop, and each turn looks at its socket: it has read the last word before anybody asks.
        for _ in range(3):
            await asyncio.sleep(0)
        self.hung_up.set()
        await self.over.wait()
        asking.cancel()
        for end in (writer, up_writer):
            end.close()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while said := await source.read(65536):
            sink.write(said)
            await sink.drain()


@asynccontextmanager
async def silent_wire(url: str) -> AsyncIterator[tuple[SilentWire, str]]:
    """A wire to the Postgres of a database address, and the address that leads through it."""
    parts = urlsplit(url)
    wire = SilentWire(f"{parse_qs(parts.query)['host'][0]}/{_SOCKET}")
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        server = await asyncio.start_unix_server(wire.serve, f"{folder}/{_SOCKET}")
        try:
            yield wire, urlunsplit(parts._replace(query=f"host={folder}"))
        finally:
            wire.over.set()
            server.close()
            await server.wait_closed()
