"""Many events to twenty endpoints of which five fail: every one delivered or visibly failed, duplicates counted."""

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import msgspec
import uvloop

from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import deploy, killable_postgres, owner_of
from tests.fixtures.people import member
from tests.fixtures.server import Service

FAILING = ("status", "early", "refused", "gone", "redirect")
ENDPOINTS = 20
RETRIES = 1
_ANSWERS = {
    "good": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "status": b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    "gone": b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 302 There\r\nlocation: /good/0\r\ncontent-length: 0\r\n\r\n",
}
_APPEND = """
INSERT INTO outbox (tenant_id, event, agent_id, data, created_at)
SELECT $1, 'tx.signed', 'payer', json_build_object('txId', gen_random_uuid(), 'txHash', '0x' || repeat('ab', 32), 'to',
       '0x' || repeat('cd', 20), 'value', n::text, 'chainId', 1, 'broadcast', true)::text, service_now()
  FROM generate_series(1, $2) AS n"""
_OPEN = "SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND next_retry_at IS NOT NULL"
_COUNTS = "SELECT status, error, count(*) AS many FROM deliveries WHERE tenant_id = $1 GROUP BY 1, 2 ORDER BY 1, 2"


class Delivered(msgspec.Struct, frozen=True):
    """The fate of the events."""

    events: int
    deliveries: int
    delivered: int
    failed: dict[str, int]
    # Posts beyond the first of one delivery, at receivers that took the first.
    duplicates: int
    # Delivered by our account and never heard, heard and not delivered by our account, never made.
    wrong: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Good deliveries a second, beside the failing ones."""
        return self.delivered / self.seconds


class Posts:
    """Receivers that count."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.port = 0
        self._end = asyncio.Event()

    async def serve(self, ready: threading.Event) -> None:
        """Take posts until told to stop."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0, backlog=1000)
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
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
                await reader.readexactly(int(headers["content-length"]))
                does = head.split(" ")[1].split("/")[1]
                if does == "early":
                    break
                if does == "good":
                    self.good[headers["webhook-id"]] += 1
                writer.write(_ANSWERS[does])
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()


def events_delivered(count: int, say: Callable[[str], None]) -> Delivered:
    """Run it on a Postgres with the settings of production."""
    processes = ("signer", "identity", "api", "scheduler")
    with killable_postgres() as postgres, _receivers() as posts, deploy(postgres.database, *processes) as service:
        return _deliver(service, posts, count, say)


def _deliver(service: Service, posts: Posts, count: int, say: Callable[[str], None]) -> Delivered:
    with new_tenant(service) as tenant:
        owner = member(service, tenant, "owner", mfa=True)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            refused = closed.getsockname()[1]
        for n in range(ENDPOINTS):
            does = FAILING[n] if n < len(FAILING) else "good"
            port = refused if does == "refused" else posts.port
            url = f"http://127.0.0.1:{port}/{does}/{n}"
            owner.ok("POST", "/webhooks", {"url": url, "maxRetries": RETRIES, "retryBackoffMs": 1000})
        owner.close()
        return asyncio.run(_events(service, posts, tenant.id, count, say))


async def _events(service: Service, posts: Posts, tenant: str, count: int, say: Callable[[str], None]) -> Delivered:
    async with owner_of(service.database) as owner:
        began = time.monotonic()
        await owner.execute(_APPEND, tenant, count)
        while await owner.fetchval("SELECT EXISTS (SELECT FROM outbox)") or await owner.fetchval(_OPEN, tenant):
            await asyncio.sleep(1)
            if int(time.monotonic() - began) % 30 == 0:
                say(f"deliveries: {len(posts.good)} heard after {time.monotonic() - began:.0f} s")
        seconds = time.monotonic() - began
        return await _judge(owner, posts, tenant, count, seconds)


async def _judge(owner: asyncpg.Connection, posts: Posts, tenant: str, count: int, seconds: float) -> Delivered:
    counts = await owner.fetch(_COUNTS, tenant)
    made = sum(row["many"] for row in counts)
    told = await owner.fetch("SELECT id FROM deliveries WHERE tenant_id = $1 AND status = 'delivered'", tenant)
    delivered = {str(row["id"]) for row in told}
    missing = count * ENDPOINTS - made - _not_made_for_the_gone(counts, count)
    return Delivered(
        events=count,
        deliveries=made,
        delivered=len(delivered),
        failed={row["error"]: row["many"] for row in counts if row["status"] == "failed"},
        duplicates=sum(posts.good.values()) - len(posts.good),
        wrong=len(delivered ^ set(posts.good)) + max(0, missing),
        seconds=seconds,
    )


def _not_made_for_the_gone(counts: list[Any], count: int) -> int:
    """Events published after the endpoint said that it is gone are not for it any more."""
    made = sum(row["many"] for row in counts if row["error"] in ("gone", "endpoint_disabled"))
    return count - made


@contextmanager
def _receivers() -> Iterator[Posts]:
    posts, ready = Posts(), threading.Event()
    thread = threading.Thread(target=lambda: uvloop.run(posts.serve(ready)), daemon=True)
    thread.start()
    assert ready.wait(10), "the receivers did not start"
    yield posts
    posts.stop()
    thread.join(10)
