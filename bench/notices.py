"""The time from an event to its message, while fifty events a second are published: `python -P -m bench.notices`.

Each of the tenants has one channel and one event, so that no message waits for its minute; the stream beside them is of
events of which nobody is told.
"""

import asyncio
import threading
import time
from contextlib import closing
from statistics import median

import asyncpg
import uvloop

from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import deploy, killable_postgres, owner_of
from tests.fixtures.people import member
from tests.fixtures.server import Service

TENANTS, PER_SECOND, SECONDS = 20, 50, 20.0
_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_APPEND = """
INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
VALUES ($1, $2, 'payer', '{"by":"user:somebody","reason":null}', service_now())"""


class Room:
    """A receiver that notes when each address was first written to."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.port = 0
        self._end = asyncio.Event()

    async def serve(self, ready: threading.Event) -> None:
        """Take posts until told to stop."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._end.wait()
        server.close()

    def stop(self) -> None:
        """Stop it."""
        self._loop.call_soon_threadsafe(self._end.set)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.at.setdefault(head.split(" ")[1], time.monotonic())
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
                await reader.readexactly(int(headers["content-length"]))
                writer.write(_OK)
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()


def measure() -> list[float]:
    """Seconds from each event to its message."""
    room, ready = Room(), threading.Event()
    thread = threading.Thread(target=lambda: uvloop.run(room.serve(ready)), daemon=True)
    thread.start()
    assert ready.wait(10), "the receiver did not start"
    processes = ("signer", "identity", "api", "scheduler")
    with killable_postgres() as postgres, deploy(postgres.database, *processes) as service:
        tenants = [_tenant(service, room, number) for number in range(TENANTS)]
        try:
            began = asyncio.run(_events(service, [tenant.id for tenant in tenants], room))
        finally:
            room.stop()
            thread.join(10)
    return sorted(room.at[f"/{number}"] - at for number, at in enumerate(began))


def _tenant(service: Service, room: Room, number: int) -> Tenant:
    made = new_tenant(service).__enter__()
    with closing(member(service, made, "owner", mfa=True)) as owner:
        owner.ok("POST", "/notification-channels", {"kind": "ntfy", "target": f"http://127.0.0.1:{room.port}/{number}"})
    return made


async def _events(service: Service, tenants: list[str], room: Room) -> list[float]:
    began: list[float] = []
    async with owner_of(service.database) as owner:
        ends = time.monotonic() + SECONDS
        stream = asyncio.create_task(_stream(service, tenants[0], ends))
        for tenant in tenants:
            began.append(time.monotonic())
            await _happens(owner, tenant, "agent.frozen")
            await asyncio.sleep(SECONDS / len(tenants) / 2)
        await stream
        for _ in range(600):
            if len(room.at) == len(tenants):
                break
            await asyncio.sleep(0.1)
    return began


async def _stream(service: Service, tenant: str, ends: float) -> None:
    async with owner_of(service.database) as owner:
        while time.monotonic() < ends:
            await _happens(owner, tenant, "tx.signed")
            await asyncio.sleep(1 / PER_SECOND)


async def _happens(owner: asyncpg.Connection, tenant: str, event: str) -> None:
    await owner.execute(_APPEND, tenant, event)


if __name__ == "__main__":
    seconds = measure()
    print(
        f"{len(seconds)} messages beside {PER_SECOND} events a second: median {median(seconds):.2f} s, "
        f"last {seconds[-1]:.2f} s after their event"
    )
