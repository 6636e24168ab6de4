"""A real HTTP server in front of the real API that misbehaves when asked to, route by route.

What it does with a route is a `Deed`: a few lines that get the request and the two ends of the connection. Whatever has
no deed goes to the API behind it, byte by byte, the stream of events too.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def raw(self) -> bytes:
        """The same for the API behind, which is to hang up after its answer."""
        lines = [f"{name}: {value}" for name, value in self.headers.items() if name != "connection"]
        head = "\r\n".join([f"{self.method} {self.path} HTTP/1.1", *lines, "connection: close"])
        return f"{head}\r\n\r\n".encode() + self.body


Deed = Callable[["OddApi", Request, asyncio.StreamWriter], Awaitable[None]]


class OddApi:
    """An API that misbehaves: its address, its behaviour, and the requests that it heard."""

    def __init__(self, behind: str) -> None:
        parts = urlsplit(behind)
        self.behind = (parts.hostname or "", parts.port or 0)
        self.port = 0
        self.heard: list[Request] = []
        # Bytes that were taken off our hands in answers of our own.
        self.sent = 0
        self._deeds: list[tuple[str, str, Deed]] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def does(self, deed: Deed, path: str = "/", method: str = "") -> None:
        """From now on do this with every request whose path begins so, before anything that was asked for earlier."""
        self._deeds.insert(0, (method, path, deed))

    def well(self) -> None:
        """From now on pass everything on."""
        self._deeds = []

    def at(self, path: str, method: str = "") -> list[Request]:
        """Return the requests to an address."""
        return [one for one in self.heard if one.path.startswith(path) and method in ("", one.method)]

    async def listen(self) -> None:
        """Take connections, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Take no connections any more, and drop those that are there."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(await _request(reader), writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if task.cancelling() else writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.heard.append(request)
        for method, path, deed in self._deeds:
            if request.path.startswith(path) and method in ("", request.method):
                return await deed(self, request, writer)
        await passes_on(self, request, writer)

    async def ask(self, request: Request) -> AsyncGenerator[bytes]:
        """Pass on the answer of the API behind, as it comes."""
        reader, writer = await asyncio.open_connection(*self.behind)
        try:
            writer.write(request.raw)
            while chunk := await reader.read(65536):
                yield chunk
        finally:
            writer.transport.abort()

    async def write(self, writer: asyncio.StreamWriter, said: bytes) -> None:
        """Say something and count what was taken."""
        writer.write(said)
        await writer.drain()
        self.sent += len(said)


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def answers(status: int, body: object = None, **headers: str) -> Deed:
    """Answer this: bytes as they are, anything else as JSON."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"HTTP/1.1 {status} So", f"content-length: {len(content)}", "connection: close", *lines]
    said = "\r\n".join(head).encode() + b"\r\n\r\n" + content

    async def deed(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await api.write(writer, said)

    return deed


def refuses(status: int, error: str = "", code: str = "", **headers: str) -> Deed:
    """Answer no, in the envelope of the service."""
    return answers(status, {"ok": False, "error": error, "data": {"code": code} if code else {}}, **headers)


def succeeds(data: object, **headers: str) -> Deed:
    """Answer yes, with whatever data."""
    return answers(200, {"ok": True, "data": data}, **headers)


async def passes_on(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Give the answer of the API behind, as it comes."""
    async with contextlib.aclosing(api.ask(request)) as said:
        async for chunk in said:
            writer.write(chunk)
            await writer.drain()


async def says_nothing(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Take the request and never answer."""
    await asyncio.Event().wait()


async def hangs_up(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Take the request and close."""


async def drips(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer one byte at a time, without an end."""
    await api.write(writer, b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        await api.write(writer, b" ")
        await asyncio.sleep(0.02)


async def cuts(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Promise more than comes."""
    await api.write(writer, b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"ok": true, "da')


async def floods(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer without an end, as fast as it is taken."""
    await api.write(writer, b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"ok": true, "data": "')
    while True:
        await api.write(writer, b"x" * 2**20)


async def loses(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
    """Pass the request on, let the API do what it says, and keep the answer back."""
    async with contextlib.aclosing(api.ask(request)) as said:
        async for _ in said:
            pass


def changing(pattern: bytes, becomes: bytes) -> Deed:
    """Pass on what the API answers with something in it made otherwise."""

    async def deed(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        async with contextlib.aclosing(api.ask(request)) as said:
            whole = re.sub(pattern, becomes, b"".join([chunk async for chunk in said]))
        length = len(whole) - whole.index(b"\r\n\r\n") - 4
        await api.write(writer, re.sub(rb"(?i)content-length: \d+", b"content-length: %d" % length, whole, count=1))

    return deed


def streams(*said: bytes, then: Deed = says_nothing) -> Deed:
    """Open a stream of events, say this in it, and go on so."""

    async def deed(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await api.write(writer, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for one in said:
            await api.write(writer, one)
        await then(api, request, writer)

    return deed


@asynccontextmanager
async def odd_api(behind: str) -> AsyncIterator[OddApi]:
    """One that behaves well until it is told otherwise."""
    api = OddApi(behind)
    await api.listen()
    try:
        yield api
    finally:
        await api.refuse()
