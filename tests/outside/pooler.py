"""A pooler before Postgres as clients see it: with another process number than that of the server it talks to."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit, urlunsplit

_SOCKET = ".s.PGSQL.5432"


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Message by message, with a made-up number in BackendKeyData."""
    try:
        while True:
            head = await reader.readexactly(5)
            content = await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            if head[:1] == b"K":
                content = (int.from_bytes(content[:4], "big") + 1_000_000).to_bytes(4, "big") + content[4:]
            writer.write(head + content)
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def _questions(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while said := await reader.read(65536):
            writer.write(said)
    finally:
        writer.close()


@asynccontextmanager
async def pooler(url: str) -> AsyncIterator[str]:
    """A pooler before the Postgres of a database address; the address that leads through it."""
    parts = urlsplit(url)
    real = f"{parse_qs(parts.query)['host'][0]}/{_SOCKET}"

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(real)
        await asyncio.gather(_questions(reader, up_writer), _answers(up_reader, writer), return_exceptions=True)

    with tempfile.TemporaryDirectory(prefix="po-") as folder:
        server = await asyncio.start_unix_server(on_connection, f"{folder}/{_SOCKET}")
        try:
            yield urlunsplit(parts._replace(query=f"host={folder}"))
        finally:
            server.close()
            await server.wait_closed()
