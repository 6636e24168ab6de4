"""A wire to a service that is there when a test says so."""

import asyncio
from contextlib import suppress


class Relay:
    """Passes everything on to a port of this machine, from a port of its own."""

    def __init__(self, port: int, to: int) -> None:
        self.port, self._to = port, to
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Be there from now on."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        """Be gone, and cut what is open."""
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._open |= {writer, up_writer}
        await asyncio.gather(_pass_on(reader, up_writer), _pass_on(up_reader, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
