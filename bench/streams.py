"""Readers of streams in a process of their own: when the first event comes, how old each is, how many a second."""

import asyncio
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvloop

from bench.load import IN_CLEAR, Way, connect
from bench.upstream import EVENTS

_EVENT = re.compile(rb"data: (\d+)\n\n")


class Stream(msgspec.Struct, frozen=True):
    """Medians in milliseconds, from the request to the first event and from an event's making to its reading; a rate."""

    first: float
    age: float
    rate: float

    def __str__(self) -> str:
        return f"first {self.first:6.2f} ms   each {self.age:6.2f} ms   {self.rate:8.0f} events/s"


def read(port: int, paced: bytes, fast: bytes, *, seconds: float, way: Way = IN_CLEAR) -> Stream:
    """Read streams one after the other on one connection, half of the time paced ones, then ones without a pause."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (port, paced, fast, seconds / 2, way))


@contextmanager
def flowing(port: int, request: bytes, *, count: int) -> Iterator[Callable[[], float]]:
    """Read so many endless answers at once while this lasts; gives the megabytes that came in a second so far."""
    context = multiprocessing.get_context("spawn")
    came, began = context.Value("q", 0), context.Event()
    process = context.Process(target=_flow, args=(port, request, count, came, began), daemon=True)
    process.start()
    began.wait()
    since, before = time.perf_counter(), came.value
    try:
        yield lambda: (came.value - before) / 1e6 / (time.perf_counter() - since)
    finally:
        process.terminate()
        process.join()


def _flow(port: int, request: bytes, count: int, came: Any, began: Any) -> None:
    uvloop.run(_flow_all(port, request, count, came, began))


async def _flow_all(port: int, request: bytes, count: int, came: Any, began: Any) -> None:
    drains = [_Drain(came) for _ in range(count)]
    for drain in drains:
        (await connect(port, IN_CLEAR, drain)).ask(request)
    await asyncio.gather(*(drain.first for drain in drains))
    began.set()
    await asyncio.Event().wait()


class _Drain(asyncio.Protocol):
    """A connection whose answer is counted and dropped."""

    def __init__(self, came: Any) -> None:
        self._came = came
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def ask(self, request: bytes) -> None:
        """Send the request."""
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._came.value += len(data)
        if not self.first.done():
            if data.startswith(b"HTTP/1.1 200"):
                self.first.set_result(None)
            else:
                self.first.set_exception(ConnectionError(data))


def _run(port: int, paced: bytes, fast: bytes, seconds: float, way: Way) -> Stream:
    return uvloop.run(_read(port, paced, fast, seconds, way))


async def _read(port: int, paced: bytes, fast: bytes, seconds: float, way: Way) -> Stream:
    reader = await connect(port, way, _Reader())
    await reader.stream(paced)
    firsts, ages, count = [], [], 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        first, aged = await reader.stream(paced)
        firsts.append(first)
        ages += aged
    began = time.perf_counter()
    while time.perf_counter() < began + seconds:
        count += len((await reader.stream(fast))[1])
    rate = count / (time.perf_counter() - began)
    reader.close()
    return Stream(statistics.median(firsts), statistics.median(ages), rate)


class _Reader(asyncio.Protocol):
    """A connection that reads one chunked answer after the other."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._in_body = False
        self._first = 0.0
        self._ages: list[float] = []
        self._text = b""
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def stream(self, request: bytes) -> tuple[float, list[float]]:
        """Ask for one stream; milliseconds to its first event, and the age of each."""
        self._first, self._ages, self._text, self._in_body = 0.0, [], b"", False
        self._over = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        self._transport.write(request)
        await self._over
        if len(self._ages) != EVENTS:
            raise ConnectionError(f"a stream of {len(self._ages)} events instead of {EVENTS}")
        return (self._first - began) * 1000, self._ages

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, problem: Exception | None) -> None:
        if not self._over.done():
            self._over.set_exception(problem or ConnectionResetError("the service closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._in_body:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            if not self._received.startswith(b"HTTP/1.1 200"):
                self._over.set_exception(ConnectionError(bytes(self._received)))
                return
            del self._received[: end + 4]
            self._in_body = True
        while (chunk := self._chunk()) is not None:
            if not chunk:
                self._over.set_result(None)
                return
            self._events(chunk)

    def _chunk(self) -> bytes | None:
        """The next whole chunk, empty for the last; an event may be spread over several."""
        end = self._received.find(b"\r\n")
        if end < 0:
            return None
        size = int(self._received[:end], 16)
        if len(self._received) < end + 4 + size:
            return None
        chunk = bytes(self._received[end + 2 : end + 2 + size])
        del self._received[: end + 4 + size]
        return chunk

    def _events(self, chunk: bytes) -> None:
        now, here = time.monotonic_ns(), time.perf_counter()
        self._text += chunk
        at = 0
        for event in _EVENT.finditer(self._text):
            self._first = self._first or here
            self._ages.append((now - int(event[1])) / 1e6)
            at = event.end()
        self._text = self._text[at:]
