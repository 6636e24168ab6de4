"""A closed loop of keep-alive clients in a process of its own: raw requests, made beforehand, counted and timed."""

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Iterator, Sequence

import msgspec
import uvloop


class Figures(msgspec.Struct, frozen=True):
    """What one run measured: per second, and milliseconds at the median and at 99 %."""

    rate: float
    p50: float
    p99: float
    statuses: dict[int, int]

    def __str__(self) -> str:
        wrong = {status: count for status, count in self.statuses.items() if status not in (200, 201)}
        return f"{self.rate:8.0f}/s   p50 {self.p50:6.2f} ms   p99 {self.p99:6.2f} ms" + (
            f"   {wrong}" if wrong else ""
        )


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


def run(port: int, requests: Sequence[bytes], *, clients: int, seconds: float, warm_up: float = 1.0) -> Figures:
    """Send requests in turn from `clients` connections; the warm-up is not counted."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (port, list(requests), clients, seconds, warm_up))


def together(port: int, loads: Sequence[tuple[Sequence[bytes], int]], *, seconds: float) -> list[Figures]:
    """Several loads at once, each with its own number of clients, from one process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_together, (port, [(list(requests), clients) for requests, clients in loads], seconds))


def _run(port: int, requests: list[bytes], clients: int, seconds: float, warm_up: float) -> Figures:
    return uvloop.run(_loop(port, requests, clients, seconds, warm_up))


def _together(port: int, loads: list[tuple[list[bytes], int]], seconds: float) -> list[Figures]:
    async def all_of_them() -> list[Figures]:
        return await asyncio.gather(*(_loop(port, requests, clients, seconds, 1.0) for requests, clients in loads))

    return uvloop.run(all_of_them())


class _Client(asyncio.Protocol):
    """One keep-alive connection in a closed loop. Callbacks, because streams would cost as much as the service."""

    def __init__(
        self, turns: Iterator[bytes], begins: float, ends: float, times: list[float], statuses: dict[int, int]
    ) -> None:
        self._turns, self._begins, self._ends, self._times, self._statuses = turns, begins, ends, times, statuses
        self._received = b""
        self._expected = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._expected:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self._received.lower().index(b"content-length: ") + 16
            self._expected = end + 4 + int(self._received[at : self._received.index(b"\r", at)])
        if len(self._received) >= self._expected:
            self._count()
            self._next()

    def connection_lost(self, problem: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(problem or ConnectionResetError("the service closed the connection"))

    def _count(self) -> None:
        if self._sent >= self._begins:
            self._times.append(time.perf_counter() - self._sent)
            status = int(self._received[9:12])
            self._statuses[status] = self._statuses.get(status, 0) + 1

    def _next(self) -> None:
        self._received, self._expected, self._sent = b"", 0, time.perf_counter()
        if self._sent >= self._ends:
            self.done.set_result(None)
            self._transport.close()
        else:
            self._transport.write(next(self._turns))


async def _loop(port: int, requests: list[bytes], clients: int, seconds: float, warm_up: float) -> Figures:
    begins = time.perf_counter() + warm_up
    times: list[float] = []
    statuses: dict[int, int] = {}
    turns = itertools.cycle(requests)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: _Client(turns, begins, begins + seconds, times, statuses), "127.0.0.1", port
        )
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in made))
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else 0.0  # noqa: E731
    return Figures(len(times) / seconds, at(0.5), at(0.99), statuses)
