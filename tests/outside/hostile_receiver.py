"""Hostile webhook receivers, beside good ones: real HTTPS on loopback, in a thread of its own.

What a server does with a request stands at the end of its path; what comes before it is the endpoint's own.
"""

import asyncio
import contextlib
import gzip
import itertools
import ssl
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from tests.outside.certificates import Authority

# "plain" speaks no TLS.
SERVERS = ("good", "self-signed", "wrong-name", "expired", "plain")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Heard(msgspec.Struct, frozen=True):
    """One request as it came."""

    server: str
    connection: int
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> dict[str, Any]:
        """The body as a receiver reads it."""
        return msgspec.json.decode(self.body)  # type: ignore[no-any-return]


class HostileReceiver:
    """The servers of a hostile receiver, and everything that they heard, in the order in which it came."""

    def __init__(self, folder: Path) -> None:
        self.ca_file = folder / "ca.pem"
        self.ports: dict[str, int] = {}
        self.heard: list[Heard] = []
        # Bytes of a body that were taken off our hands, by path.
        self.sent: Counter[str] = Counter()
        self._folder = folder
        self._names = itertools.count(1)
        self._connections = itertools.count(1)
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._tasks: set[asyncio.Task[Any] | None] = set()

    def url(self, does: str, *, server: str = "good", host: str = "localhost") -> str:
        """An address of an endpoint of its own that does this."""
        scheme = "http" if server == "plain" else "https"
        return f"{scheme}://{host}:{self.ports[server]}/{next(self._names)}/{does}"

    def at(self, url: str) -> list[Heard]:
        """Return what came to an address."""
        path = "/" + url.split("/", 3)[3]
        return [one for one in self.heard if one.path == path]

    def release(self, url: str) -> None:
        """Let a `held` address answer, now and from now on."""
        self._loop.call_soon_threadsafe(self._gates["/" + url.split("/", 3)[3]].set)

    async def serve(self, ready: threading.Event) -> None:
        """The thread: open, wait for the end, hang up on everybody."""
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        servers = [server async for server in self._open()]
        ready.set()
        await self._end.wait()
        for server in servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._end.set)

    async def _open(self) -> AsyncIterator[asyncio.Server]:
        authority = Authority(self._folder)
        leaves = {
            "good": authority.leaf("good", "localhost", "*.receiver.test"),
            "self-signed": authority.leaf("self", "localhost", self_signed=True),
            "wrong-name": authority.leaf("wrong", "elsewhere.test"),
            "expired": authority.leaf("expired", "localhost", age=timedelta(days=30)),
        }
        for name in SERVERS:
            trust = None
            if name in leaves:
                trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                trust.load_cert_chain(leaves[name])
            server = await asyncio.start_server(self._caller(name), "127.0.0.1", 0, ssl=trust, backlog=1000)
            self.ports[name] = server.sockets[0].getsockname()[1]
            yield server

    def _caller(self, name: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task, connection = asyncio.current_task(), next(self._connections)
            self._tasks.add(task)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer(name, connection, reader, writer):
                    pass
            writer.close()
            self._tasks.discard(task)

        return on_connection

    async def _answer(
        self, server: str, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
        body = await reader.readexactly(int(headers["content-length"]))
        path = head[0].split(" ")[1]
        self.heard.append(Heard(server, connection, path, headers, body))
        does = path.rpartition("/")[2]
        if does.startswith("status-"):
            writer.write(f"HTTP/1.1 {does.removeprefix('status-')} Such\r\ncontent-length: 0\r\n\r\n".encode())
            return True
        return await getattr(self, f"_answer_{does.replace('-', '_')}")(path, reader, writer)  # type: ignore[no-any-return]

    async def _answer_good(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(OK)
        return True

    async def _answer_closing(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        return False

    async def _answer_held(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        await self._gates[path].wait()
        writer.write(OK)
        return True

    async def _answer_mute(self, _path: str, reader: asyncio.StreamReader, _writer: Any) -> bool:
        await reader.read()
        return False

    async def _answer_drip(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        while True:
            await _push(writer, b".")
            await asyncio.sleep(0.05)

    async def _answer_drip_body(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n")
        while True:
            await _push(writer, b".")
            self.sent[path] += 1
            await asyncio.sleep(0.05)

    async def _answer_redirect(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        there = f"https://localhost:{self.ports['good']}{path}/good"
        writer.write(f"HTTP/1.1 307 Elsewhere\r\nlocation: {there}\r\ncontent-length: 0\r\n\r\n".encode())
        return True

    async def _answer_gone(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n")
        return True

    async def _answer_busy(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 429 Too Many\r\nretry-after: 7200\r\ncontent-length: 0\r\n\r\n")
        return True

    async def _answer_later(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 503 Later\r\nretry-after: 300\r\ncontent-length: 0\r\n\r\n")
        return True

    async def _answer_soon(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 503 Soon\r\nretry-after: nonsense\r\ncontent-length: 0\r\n\r\n")
        return True

    async def _answer_huge(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n")
        while True:
            await _push(writer, b"." * 65536)
            self.sent[path] += 65536

    async def _answer_bomb(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        bomb = gzip.compress(bytes(2_000_000))
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(bomb)}\r\n\r\n"
        writer.write(head.encode() + bomb)
        return True

    async def _answer_endless_head(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            await _push(writer, b"x-more: " + b"." * 8000 + b"\r\n")

    async def _answer_early(self, *_: Any) -> bool:
        return False

    async def _answer_half(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 O")
        return False

    async def _answer_garbage(self, _path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"\x00\xff\r\n\r\n" * 100)
        return False

    async def _answer_flaky(self, path: str, _reader: Any, writer: asyncio.StreamWriter) -> bool:
        """Good from the third time on."""
        times = sum(one.path == path for one in self.heard)
        writer.write(OK if times > 2 else b"HTTP/1.1 500 Not Yet\r\ncontent-length: 0\r\n\r\n")
        return True


async def _push(writer: asyncio.StreamWriter, data: bytes) -> None:
    # Without a turn of the loop nobody hears that the other side has gone.
    await asyncio.sleep(0)
    if writer.is_closing():
        raise ConnectionResetError
    writer.write(data)
    await writer.drain()


@contextmanager
def running_receiver() -> Iterator[HostileReceiver]:
    """Start all servers in this process."""
    with tempfile.TemporaryDirectory(prefix="ch-") as folder:
        receivers, ready = HostileReceiver(Path(folder)), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(receivers.serve(ready)), daemon=True)
        thread.start()
        assert ready.wait(60)
        yield receivers
        receivers.stop()
        thread.join(60)
