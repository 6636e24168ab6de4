"""HTTP/1.1 over TLS read and written by hand, so that an upstream can say what no library would let it say."""

import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec

REASONS = {200: "OK", 101: "Switching Protocols", 302: "Found"}
_LARGEST_HEAD = 2**20
_LOGGED = 8192


class Goodbye(Exception):
    """The connection ends here."""


class Log:
    """A log of requests, one line each, written before they are answered."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("ab", buffering=0)
        self._encode = msgspec.json.Encoder().encode

    def note(self, kind: str, server: str, connection: int, **more: Any) -> None:
        """Write a line."""
        self._file.write(self._encode({"kind": kind, "server": server, "connection": connection, **more}) + b"\n")


class Desk:
    """The test's control of the server while answers are under way: gates by name and counts of bytes."""

    def __init__(self) -> None:
        self.gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.sent: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a test: `release NAME` opens a gate once, `sent NAME` asks for a count."""
        while line := await reader.readline():
            word, name = line.decode().split()
            if word == "release":
                self.gates[name].release()
            writer.write(b"%d\n" % self.sent[name])
        writer.close()


class Visit:
    """One request, and the means to answer it well or badly."""

    def __init__(self, line: Any, head: list[str], desk: Desk, log: Callable[..., None]) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.reader, self.writer, self.turn = line
        self.desk = desk
        self._log = log
        self.method, self.target, _ = head[0].split(" ", 2)
        self.path, _, query = self.target.partition("?")
        self.query = dict(parse_qsl(query, keep_blank_values=True))
        self.headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:])]
        self.pending = self.header("transfer-encoding") is not None or self.header("content-length") not in (None, "0")

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((value for known, value in self.headers if known.lower() == name), None)

    def number(self, name: str, default: int) -> int:
        """A number of the query."""
        return int(self.query.get(name, default))

    @property
    def credential(self) -> str:
        """Credential behind the word `Bearer`, or the whole key where there is no such word."""
        return (self.header("authorization") or self.header("x-api-key") or "").rpartition(" ")[2]

    async def body(self) -> bytes:
        """The whole body; its size and beginning are logged."""
        pieces = [piece async for piece in self.pieces()]
        return b"".join(pieces)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        size, first = 0, b""
        source = self._chunks() if self.header("transfer-encoding") else self._body_by_length()
        async for piece in source:
            size += len(piece)
            first += piece[: max(0, _LOGGED - len(first))]
            yield piece
        self.pending = False
        self._log("body", size=size, text=first.decode("latin-1"))

    async def _body_by_length(self) -> AsyncIterator[bytes]:
        left = int(self.header("content-length") or 0)
        while left:
            piece = await self.reader.read(min(left, 65536))
            if not piece:
                raise Goodbye
            left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self.reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        while await self.reader.readuntil(b"\r\n") != b"\r\n":
            pass

    async def send(self, data: bytes) -> None:
        """Bytes as they are."""
        # Without a turn of the loop nobody hears that the other side has gone.
        await asyncio.sleep(0)
        if self.writer.is_closing():
            raise Goodbye
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int = 200, **headers: str) -> None:
        """A head alone; in the names an underscore stands for a hyphen."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def answer(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """A whole answer with the right length."""
        await self.head(status, **headers, content_length=str(len(body)))
        await self.send(body)

    async def answer_json(self, content: Any, **headers: str) -> None:
        """A whole answer in JSON."""
        await self.answer(msgspec.json.encode(content), content_type="application/json", **headers)

    async def chunk(self, data: bytes) -> None:
        """One chunk of a chunked answer; an empty one ends it."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self) -> None:
        """End the connection without a goodbye."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        raise Goodbye

    def note(self, kind: str, **more: Any) -> None:
        """Log something else of this connection."""
        self._log(kind, **more)


Answers = Mapping[str, Callable[[Visit], Awaitable[None]]]


class Server:
    """One listener of a name, which shows one certificate, or none."""

    def __init__(self, name: str, answers: Answers, desk: Desk, log: Log) -> None:
        self._name, self._answers, self._desk, self._log = name, answers, desk, log
        self._numbers = itertools.count(1)
        self._asked: dict[Any, str | None] = {}

    async def open(self, certificate: Path | None) -> int:
        """Listen on a free port of loopback."""
        context = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.set_alpn_protocols(["http/1.1"])
            context.sni_callback = self._hello
        serve = {"mute": self._mute, "plain": self._plain}.get(self._name, self._serve)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, limit=_LARGEST_HEAD)
        return int(server.sockets[0].getsockname()[1])

    def _hello(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        # Also connections that fail in the middle of the handshake were made.
        self._log.note("hello", self._name, 0, sni=name)

    async def _mute(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._log.note("connection", self._name, next(self._numbers))
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async def _plain(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a handshake as a server without TLS does."""
        first = await reader.read(5)
        self._log.note("connection", self._name, next(self._numbers), first=first.hex())
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)

        def log(kind: str, **more: Any) -> None:
            self._log.note(kind, self._name, number, **more)

        log("connection")
        try:
            for turn in itertools.count(1):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
                visit = Visit((reader, writer, turn), head, self._desk, log)
                log("request", method=visit.method, target=visit.target, headers=visit.headers)
                await self._answers.get(visit.path, self._answers["/echo"])(visit)
                if visit.pending:
                    break
        except (Goodbye, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            log("closed")
            writer.close()
