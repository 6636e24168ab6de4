"""A wire between a process and Postgres that breaks exactly at the statement which commits a signature.

It reads the client's messages as far as it must: which prepared statements are `sign_write`, and when one is bound. A
statement that "arrives late" is kept back until the next COMMIT on any connection. Postgres then runs it before that
COMMIT's client hears the answer.
"""

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit, urlunsplit

Cut = Literal["before it is sent", "arrives late", "while it runs", "before its reply"]
STATEMENT = b"sign_write"
_SOCKET = ".s.PGSQL.5432"


class CuttingProxy:
    """Passes everything on, until it is told to cut."""

    def __init__(self, folder: Path, postgres: str) -> None:
        self._folder, self._postgres = folder, postgres
        self._next: Cut | None = None
        self.cuts = 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._listening = threading.Event()
        self._clients: set[asyncio.StreamWriter] = set()
        self._late: _Late | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def start(self) -> None:
        """Listen, on a thread of its own."""
        self._thread.start()
        assert self._listening.wait(60)

    def stop(self) -> None:
        """Cut everything and end."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def cut_next(self, how: Cut) -> None:
        """Cut the connection of the next signature that is written."""
        self._next = how

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._on_connection, str(self._folder / _SOCKET))
        self._listening.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._clients):
            writer.close()
        if self._late is not None:
            self._late.writer.close()
        await server.wait_closed()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        up_reader, up_writer = await asyncio.open_unix_connection(self._postgres)
        wire = _Wire(self, reader, writer, up_reader, up_writer)
        answers = asyncio.ensure_future(wire.answers())
        try:
            await wire.questions()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._clients.discard(writer)
            writer.close()
            if self._late is None or self._late.writer is not up_writer:
                up_writer.close()
            await asyncio.gather(answers, return_exceptions=True)

    def take_cut(self) -> Cut | None:
        """The cut that is due, once."""
        due, self._next = self._next, None
        self.cuts += due is not None
        return due

    def hold(self, statement: bytes, up_writer: asyncio.StreamWriter) -> asyncio.Event:
        """Keep a statement back; the event says that Postgres has answered it."""
        self._late = _Late(statement, up_writer, asyncio.Event())
        return self._late.answered

    async def let_go(self) -> None:
        """Send what was kept back, and wait for its answer."""
        if (late := self._late) is not None:
            late.writer.write(late.statement)
            await asyncio.wait_for(late.answered.wait(), 60)
            self._late = None
            late.writer.close()


class _Late(NamedTuple):
    statement: bytes
    writer: asyncio.StreamWriter
    answered: asyncio.Event


class _Wire:
    """One connection through the proxy."""

    def __init__(
        self,
        proxy: CuttingProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader, self._writer, self._up_reader, self._up_writer = reader, writer, up_reader, up_writer
        self._statements: set[bytes] = set()
        self._swallow = False
        # Of a statement that was kept back.
        self._answered: asyncio.Event | None = None

    async def questions(self) -> None:
        """From the client to Postgres, message by message."""
        length = await self._reader.readexactly(4)
        self._up_writer.write(length + await self._reader.readexactly(int.from_bytes(length, "big") - 4))
        cut: Cut | None = None
        kept = b""
        while True:
            kind = await self._reader.readexactly(1)
            length = await self._reader.readexactly(4)
            content = await self._reader.readexactly(int.from_bytes(length, "big") - 4)
            if kind == b"P" and STATEMENT in content:
                self._statements.add(content.split(b"\0", 1)[0])
            if kind == b"B" and content.split(b"\0", 2)[1] in self._statements:
                cut = self._proxy.take_cut()
            if cut == "before it is sent":
                return
            if cut == "arrives late":
                kept += kind + length + content
                if kind == b"S":
                    self._answered = self._proxy.hold(kept, self._up_writer)
                    return
                continue
            if cut == "before its reply":
                self._swallow = True
            self._up_writer.write(kind + length + content)
            # Sync ends the question: from here on Postgres commits, even if no client listens.
            if cut == "while it runs" and kind == b"S":
                await self._up_writer.drain()
                return

    async def answers(self) -> None:
        """From Postgres to the client; what must not arrive is taken from the wire."""
        while data := await self._up_reader.read(65536):
            # ReadyForQuery after the statement: it is committed.
            ended = data.endswith((b"Z\0\0\0\5I", b"Z\0\0\0\5T"))
            if self._answered is not None:
                if ended:
                    self._answered.set()
                continue
            if self._swallow:
                if ended:
                    break
                continue
            if b"COMMIT\0" in data:
                await self._proxy.let_go()
            self._writer.write(data)
        self._writer.close()
        self._up_writer.close()


@contextmanager
def cutting_proxy(url: str) -> Iterator[tuple[CuttingProxy, str]]:
    """A proxy before the Postgres of a database address, and the address that leads through it."""
    parts = urlsplit(url)
    real = parse_qs(parts.query)["host"][0]
    with tempfile.TemporaryDirectory(prefix="cp-") as folder:
        proxy = CuttingProxy(Path(folder), f"{real}/{_SOCKET}")
        proxy.start()
        try:
            yield proxy, urlunsplit(parts._replace(query=f"host={folder}"))
        finally:
            proxy.stop()
