"""A closed loop of keep-alive clients in a process of its own: raw requests, made beforehand, counted and timed."""

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Sequence

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


async def _loop(port: int, requests: list[bytes], clients: int, seconds: float, warm_up: float) -> Figures:
    turns = itertools.cycle(requests)
    begins = time.perf_counter() + warm_up
    ends = begins + seconds
    times: list[float] = []
    statuses: dict[int, int] = {}

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (started := time.perf_counter()) < ends:
            writer.write(next(turns))
            head = await reader.readuntil(b"\r\n\r\n")
            at = head.lower().index(b"content-length: ") + 16
            await reader.readexactly(int(head[at : head.index(b"\r", at)]))
            now = time.perf_counter()
            if started >= begins:
                times.append(now - started)
                status = int(head[9:12])
                statuses[status] = statuses.get(status, 0) + 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else 0.0  # noqa: E731
    return Figures(len(times) / seconds, at(0.5), at(0.99), statuses)
