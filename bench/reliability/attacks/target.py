"""The deployment as an attack knows it, and the few words in which attacks speak to it."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

LOCAL = "127.0.0.1"
# Attackers come from an address of their own: who shares one with them before a token is shown shares its turns too.
ELSEWHERE = "127.0.0.66"
OPENED_A_SECOND = 500
# An answer that takes longer is given up: the attack goes on.
PATIENCE = 20.0


class Hostile(msgspec.Struct, frozen=True):
    """An agent of an attacker's, with its token."""

    id: str
    token: str


class Attacker(msgspec.Struct, frozen=True):
    """A tenant of an attacker's, with its key and its agents."""

    id: str
    key: str
    agents: list[Hostile]


class Target(msgspec.Struct, frozen=True):
    """Addresses of all listeners, and the credentials that the attacker honestly has."""

    api: int
    proxy: int
    # A server of the attacker's own, to which its tenants have routes.
    upstream: int
    tenants: list[Attacker]
    # Tenants that one person made.
    person: list[Attacker]
    # Of an admin of the first tenant, who showed a second factor just now.
    admin: str = ""

    @property
    def tenant(self) -> Attacker:
        """The first tenant."""
        return self.tenants[0]

    @property
    def agent(self) -> Hostile:
        """Its first agent."""
        return self.tenants[0].agents[0]

    def hostile(self, token: str, path: str, method: str = "GET", *headers: str) -> bytes:
        """The head of a request for the attacker's own server, through the proxy."""
        lines = (f"Authorization: Bearer {token}", *headers)
        return head(method, f"/proxy/localhost:{self.upstream}/{path}", *lines)


Attack = Callable[[Target, float], Awaitable[Counter[str]]]


def head(method: str, path: str, *headers: str) -> bytes:
    """A request's head."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode("latin-1")


def with_body(method: str, path: str, body: bytes, *headers: str) -> bytes:
    """A whole request with a JSON body."""
    return head(method, path, "Content-Type: application/json", f"Content-Length: {len(body)}", *headers) + body


async def connect(port: int, source: str = ELSEWHERE) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, from an address of this machine."""
    return await asyncio.open_connection(LOCAL, port, local_addr=(source, 0), limit=2**20)


async def ask(port: int, request: bytes, source: str = ELSEWHERE) -> str:
    """Send a request on a connection of its own, read the answer to its end, say its status."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await connect(port, source)
            try:
                writer.write(request)
                await writer.drain()
                said = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        line.split(b":")[1]
                        for line in said.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    b"0",
                )
                left = int(length)
                while left > 0 and (piece := await reader.read(min(left, 2**20))):
                    left -= len(piece)
                return said.split(b" ", 2)[1].decode()
            finally:
                writer.close()
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError) as problem:
        return type(problem).__name__


async def again_and_again(
    port: int, requests: list[bytes], seconds: float, connections: int, source: str = ELSEWHERE
) -> Counter[str]:
    """Ask the same things for some seconds, so many at a time; each answer is counted by its status."""
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds

    async def one(number: int) -> None:
        while time.monotonic() < until:
            seen[await ask(port, requests[number % len(requests)], source)] += 1
            number += 1

    await asyncio.gather(*(one(number) for number in range(connections)))
    return seen


async def hold(port: int, openings: list[bytes], seconds: float, source: str = ELSEWHERE) -> Counter[str]:
    """Open a connection for each, say the opening, and hold it to the end; those that the other side ends are counted."""
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds
    begun = time.monotonic()

    async def one(number: int, opening: bytes) -> None:
        try:
            # Faster, and the kernel's queue would be full: a client that comes then tries again after a second.
            await asyncio.sleep(max(0.0, begun + number / OPENED_A_SECOND - time.monotonic()))
            reader, writer = await connect(port, source)
            writer.write(opening)
            seen["opened"] += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(until - time.monotonic(), 0.01)):
                    while await reader.read(2**16):
                        pass
                    seen["ended by the service"] += 1
            writer.close()
        except OSError as problem:
            seen[type(problem).__name__] += 1

    await asyncio.gather(*(one(number, opening) for number, opening in enumerate(openings)))
    return seen


async def push(port: int, opening: bytes, pieces: bytes, seconds: float, connections: int) -> Counter[str]:
    """Say an opening, then the same pieces for as long as the service takes them; read and drop what it says."""
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds

    async def one() -> None:
        while time.monotonic() < until:
            try:
                reader, writer = await connect(port)
            except OSError as problem:
                seen[type(problem).__name__] += 1
                await asyncio.sleep(0.05)
                continue
            dropping = asyncio.ensure_future(_drop(reader))
            try:
                async with asyncio.timeout(max(until - time.monotonic(), 0.01)):
                    writer.write(opening)
                    while not (dropping.done() or writer.is_closing()):
                        writer.write(pieces)
                        await writer.drain()
                        seen["pieces"] += 1
                seen["ended by the service"] += 1
            except TimeoutError:
                pass
            except OSError as problem:
                seen[type(problem).__name__] += 1
            finally:
                dropping.cancel()
                writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return seen


async def _drop(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(2**16):
            pass
