"""A closed loop of keep-alive clients in a process of its own: raw requests, made beforehand, counted and timed."""

import asyncio
import functools
import itertools
import multiprocessing
import socket
import ssl
import time
from collections.abc import Iterator, Sequence

import msgspec
import uvloop

HOST = "localhost"


class Figures(msgspec.Struct, frozen=True):
    """The figures of one run: per second, and milliseconds at the median and at 99 %.

    `asked` counts the warm-up too, and so does `cpu`: the microseconds of processor that asking itself took.
    """

    rate: float
    p50: float
    p99: float
    statuses: dict[int, int]
    asked: int
    cpu: float

    def __str__(self) -> str:
        wrong = {status: count for status, count in self.statuses.items() if status not in (200, 201)}
        return f"{self.rate:8.0f}/s   p50 {self.p50:6.2f} ms   p99 {self.p99:6.2f} ms" + (
            f"   {wrong}" if wrong else ""
        )


class Way(msgspec.Struct, frozen=True):
    """The way to a server: in clear, or with TLS when an authority is named; `connect` is sent before TLS begins."""

    ca_file: str | None = None
    connect: bytes = b""


IN_CLEAR = Way()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """One request as bytes."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: bench",
        *(f"{name.replace('_', '-')}: {text}" for name, text in headers.items()),
    ]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def run(
    port: int | Sequence[int],
    requests: Sequence[bytes],
    *,
    clients: int,
    seconds: float,
    warm_up: float = 1.0,
    way: Way = IN_CLEAR,
) -> Figures:
    """Send requests in turn from `clients` connections, which several ports share; the warm-up is not counted."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (port, list(requests), clients, seconds, warm_up, way))


def run_all(port: int, request: bytes, count: int, *, clients: int) -> Figures:
    """Send one request `count` times, however long it takes. One that says `Connection: close` gets a new connection."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_all, (port, request, count, clients))


def run_each(port: int, requests: Sequence[bytes], *, clients: int) -> Figures:
    """Send each request once, however long it takes."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_each, (port, list(requests), clients))


def together(port: int, loads: Sequence[tuple[Sequence[bytes], int]], *, seconds: float) -> list[Figures]:
    """Several loads at once, each with its own number of clients, from one process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_together, (port, [(list(requests), clients) for requests, clients in loads], seconds))


async def connect[P: asyncio.Protocol](port: int, way: Way, protocol: P) -> P:
    """Connect a protocol to a port of this machine."""
    loop = asyncio.get_running_loop()
    raw = socket.socket()
    raw.setblocking(False)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await loop.sock_connect(raw, ("127.0.0.1", port))
    if way.connect:
        await loop.sock_sendall(raw, way.connect)
        # Nothing follows the answer's head before we begin with TLS.
        answer = await loop.sock_recv(raw, 4096)
        if not answer.startswith(b"HTTP/1.1 200") or not answer.endswith(b"\r\n\r\n"):
            raise ConnectionRefusedError(answer)
    tls = _trusting(way.ca_file) if way.ca_file else None
    await loop.create_connection(lambda: protocol, sock=raw, ssl=tls, server_hostname=HOST if tls else None)
    return protocol


@functools.cache
def _trusting(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _run(
    port: int | Sequence[int], requests: list[bytes], clients: int, seconds: float, warm_up: float, way: Way
) -> Figures:
    begins = time.perf_counter() + warm_up
    turn = _Turn(port, way, itertools.cycle(requests), begins, begins + seconds)
    return uvloop.run(_loop(turn, clients))


def _run_all(port: int, request: bytes, count: int, clients: int) -> Figures:
    return uvloop.run(_loop(_Turn(port, IN_CLEAR, itertools.repeat(request, count), 0.0, float("inf")), clients))


def _run_each(port: int, requests: list[bytes], clients: int) -> Figures:
    return uvloop.run(_loop(_Turn(port, IN_CLEAR, iter(requests), 0.0, float("inf")), clients))


def _together(port: int, loads: list[tuple[list[bytes], int]], seconds: float) -> list[Figures]:
    begins = time.perf_counter() + 1.0

    async def all_of_them() -> list[Figures]:
        return await asyncio.gather(
            *(
                _loop(_Turn(port, IN_CLEAR, itertools.cycle(requests), begins, begins + seconds), clients)
                for requests, clients in loads
            )
        )

    return uvloop.run(all_of_them())


class _Turn:
    """State that the clients of one run share: whom to ask, what, from when it counts and until when."""

    def __init__(
        self, port: int | Sequence[int], way: Way, requests: Iterator[bytes], begins: float, ends: float
    ) -> None:
        self.ports = itertools.cycle([port] if isinstance(port, int) else port)
        self.way, self.requests, self.begins, self.ends = way, requests, begins, ends
        self.asked = 0
        self.times: list[float] = []
        self.statuses: dict[int, int] = {}


class _Client(asyncio.Protocol):
    """One keep-alive connection in a closed loop. Callbacks, because streams would cost as much as the service."""

    def __init__(self, turn: _Turn) -> None:
        self._turn, self._port = turn, next(turn.ports)
        self._head = b""
        # What is still to come of a body; 0 while a head is awaited.
        self._missing = 0
        self._status = 0
        self._asking = self._last = False
        self._opening: asyncio.Future[_Client] | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        """Ask until the run is over."""
        await connect(self._port, self._turn.way, self)
        await self.done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            data = self._head + data
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                self._head = data
                return
            self._missing = self._length(data[:end].lower()) - (len(data) - end)
        if self._missing < 0:
            self.done.set_exception(ConnectionError("more came than was announced"))
            self._transport.close()
        elif not self._missing:
            self._count()
            self._next()

    def connection_lost(self, problem: Exception | None) -> None:
        if self.done.done():
            return
        if self._asking:
            self.done.set_exception(problem or ConnectionResetError("the service closed the connection"))
        else:
            self._opening = asyncio.ensure_future(connect(self._port, self._turn.way, self))
            self._opening.add_done_callback(self._on_open)

    def _on_open(self, opening: "asyncio.Future[_Client]") -> None:
        if (problem := opening.exception()) and not self.done.done():
            self.done.set_exception(problem)

    def _length(self, head: bytes) -> int:
        self._head, self._status, self._last = b"", int(head[9:12]), b"\r\nconnection: close\r\n" in head
        at = head.index(b"content-length: ") + 16
        return int(head[at : head.index(b"\r", at)])

    def _count(self) -> None:
        self._asking = False
        self._turn.asked += 1
        now = time.perf_counter()
        # By when the answer came: of slow ones that began before the clock as many count as end after it do not.
        if self._turn.begins <= now <= self._turn.ends:
            self._turn.times.append(now - self._sent)
            self._turn.statuses[self._status] = self._turn.statuses.get(self._status, 0) + 1

    def _next(self) -> None:
        if self._last:
            self._last = False
            self._transport.close()
            return
        self._sent = time.perf_counter()
        asked = next(self._turn.requests, None) if self._sent < self._turn.ends else None
        if asked is None:
            self.done.set_result(None)
            self._transport.close()
        else:
            self._asking = True
            self._transport.write(asked)


async def _loop(turn: _Turn, clients: int) -> Figures:
    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_Client(turn).serve() for _ in range(clients)))
    seconds = min(turn.ends, time.perf_counter()) - max(turn.begins, began)
    turn.times.sort()
    times = turn.times
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else 0.0  # noqa: E731
    cpu = (time.process_time() - used) * 1e6
    return Figures(len(times) / seconds, at(0.5), at(0.99), turn.statuses, turn.asked, cpu)
