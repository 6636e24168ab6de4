"""Deliver what is due, to many receivers at once, none of which can delay another.

A delivery is claimed in the database for a time, which ends by itself if its scheduler dies; the claim already counts
as an attempt. What is claimed starts at once, so nobody's delivery waits in here for somebody else's. What a receiver
says is never kept: only its status, or a short word for the failure.
"""

import asyncio
import secrets
from collections.abc import Sequence
from itertools import batched
from typing import Any, Literal

import msgspec
from prometheus_client import Counter, Gauge, Histogram

from custody.kit import clock
from custody.kit.callers import Origin
from custody.kit.db import DatabaseAway
from custody.kit.errors import Conflict, CustodyError, NotFound, Unavailable
from custody.kit.ids import new_uuid
from custody.kit.logs import logger
from custody.kit.outside import Outside
from custody.kit.tasks import log_failure, spawn
from custody.ports import Ports
from custody.protocol.client import InternalFault
from custody.protocol.identity.webhooks import SignDelivery
from custody.version import VERSION
from custody.webhooks import store
from custody.webhooks.envelope import envelope
from scheduler.webhooks.receiver import Answer, Receiver

log = logger(__name__)
# At once over all receivers, and for one of them by what the last attempt took: little, much, all the time there is.
AT_ONCE = 1000
FAST, SLOW, SILENT = 8, 2, 1
FAST_SECONDS = 1.0
# A claim covers the signer's time and the receiver's, with room for a machine that is busy.
CLAIM_SECONDS = 30
START_WITHIN_SECONDS = 15.0
SIGN_SECONDS = 5.0
RETRY_AFTER_MOST = 3600.0
JITTER = 0.1
# What never left waits for the signer.
UNSENT_SECONDS = 2.0
CLOSE_SECONDS = 12.0
# Shorter than the job's interval, so that one run ends before the next is due.
_RUN_SECONDS = 0.2
_PER_STATEMENT = 500
_IDLE_SECONDS = 5.0
_TAMPERED = "sealed_value_tampered"

ATTEMPTS = Counter("custody_webhook_attempts_total", "Attempts to deliver a webhook by how they ended", ["outcome"])
ATTEMPT_SECONDS = Histogram("custody_webhook_attempt_seconds", "Time from a claim to the receiver's answer")
WAITED = Histogram(
    "custody_webhook_due_seconds",
    "How long a delivery was due before it was taken up",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
UNDER_WAY = Gauge("custody_webhook_attempts_under_way", "Attempts that wait for an answer")

Outcome = Literal["delivered", "failed", "gone", "unsent"]


class Figures(msgspec.Struct, frozen=True):
    """The metrics of attempts of one sort."""

    attempts: Counter
    seconds: Histogram
    waited: Histogram
    under_way: Gauge


class Ended(msgspec.Struct, frozen=True):
    """The end of one attempt. `wait` is in seconds, for another one if there is to be one."""

    tenant: str
    id: str
    attempt: int
    outcome: Outcome
    error: str | None
    status: int | None
    wait: float
    # After this the claim is over and another attempt may be under way.
    forget_at: float


class Lane:
    """The attempts under way to one endpoint, and their bound."""

    def __init__(self, receiver: Receiver, now: float) -> None:
        self.receiver = receiver
        self.under_way = 0
        self.width = SILENT
        self.used_at = now

    def took(self, seconds: float, *, silent: bool) -> None:
        """Take note of what an attempt took, whatever came of it: what fails at once holds nothing up."""
        if silent:
            self.width = SILENT
        else:
            self.width = FAST if seconds < FAST_SECONDS else SLOW


class Deliveries:
    """The deliveries of this process; one run of the job takes up what is due, what it began goes on after it.

    What else is sent in this way says how it is claimed, sent and written down, and is otherwise the same.
    """

    # How an attempt ends whose receiver is off, and the word for a secret that is not ours.
    away: Outcome = "unsent"
    tampered = "unsigned"
    figures = Figures(ATTEMPTS, ATTEMPT_SECONDS, WAITED, UNDER_WAY)

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._lanes: dict[Any, Lane] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._ended: list[Ended] = []
        self._woken = asyncio.Event()
        self._closing = False
        self._running = asyncio.Lock()

    async def deliver(self, ports: Ports) -> int:
        """Take up what is due, for a moment; gives back how many deliveries were taken up."""
        async with self._running:
            return await self._run(ports)

    async def _run(self, ports: Ports) -> int:
        until = asyncio.get_running_loop().time() + _RUN_SECONDS
        taken = 0
        await self._drop_idle_lanes()
        while not self._closing:
            self._woken.clear()
            await self._settle(ports)
            claimed = await self._claim(ports)
            taken += claimed
            left = until - asyncio.get_running_loop().time()
            if left <= 0 or not (claimed or self._under_way):
                break
            try:
                # With every answer there is room for another.
                async with asyncio.timeout(left):
                    await self._woken.wait()
            except TimeoutError:
                break
        return taken

    async def close(self, ports: Ports) -> None:
        """Claim nothing more, let what is under way end for a bounded time, and write down how it ended."""
        self._closing = True
        self._woken.set()
        async with self._running:
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=CLOSE_SECONDS)
            for attempt in self._under_way:
                attempt.cancel()
            try:
                await self._settle(ports)
            except DatabaseAway:
                log.warning("outcomes are lost: the database is away", extra={"deliveries": len(self._ended)})
            for lane in self._lanes.values():
                await lane.receiver.close()

    async def _claim(self, ports: Ports) -> int:
        room = min(AT_ONCE - len(self._under_way), _PER_STATEMENT)
        if room <= 0 or self._closing:
            return 0
        rows = await self._take_up(ports, room)
        now = asyncio.get_running_loop().time()
        for row in rows:
            if row["problem"] is not None:
                self.figures.attempts.labels(row["problem"]).inc()
                continue
            self.figures.waited.observe((clock.now() - row["due_at"]).total_seconds())
            lane = self._lanes.get(row["endpoint_id"])
            if lane is None:
                lane = self._lanes[row["endpoint_id"]] = Lane(Receiver(self._outside, row["tenant_id"], FAST), now)
            lane.under_way += 1
            self._begin(ports, lane, row, now)
        return len(rows)

    async def _take_up(self, ports: Ports, room: int) -> Sequence[Any]:
        known = list(self._lanes)
        rooms = [max(0, lane.width - lane.under_way) for lane in self._lanes.values()]
        return await store.claim(ports.pool, room, CLAIM_SECONDS, SILENT, known, rooms)

    async def _write_down(self, ports: Ports, columns: Sequence[Sequence[Any]]) -> set[Any]:
        return await store.settle(ports.pool, columns)

    def _begin(self, ports: Ports, lane: Lane, row: Any, now: float) -> None:
        def on_failure(name: str, problem: BaseException) -> None:
            log_failure(name, problem)
            self._note(row, now, "failed", error="fault", wait=self._wait(row, None))

        def on_end(_done: asyncio.Task[None]) -> None:
            self.figures.under_way.dec()
            lane.under_way -= 1
            lane.used_at = asyncio.get_running_loop().time()
            self._woken.set()

        self.figures.under_way.inc()
        attempt = spawn(self._attempt(ports, lane, row, now), "delivery", among=self._under_way, on_failure=on_failure)
        attempt.add_done_callback(on_end)

    async def _attempt(self, ports: Ports, lane: Lane, row: Any, claimed_at: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            headers, url, body = await self._prepare(ports, row)
        except (Unavailable, TimeoutError) as problem:
            # A secret that does not open will not the next time either, so that counts and comes to an end.
            if getattr(problem, "code", None) == _TAMPERED:
                return self._note(row, claimed_at, "failed", error=self.tampered, wait=self._wait(row, None))
            return self._note(row, claimed_at, "unsent", error="signer_away", wait=UNSENT_SECONDS)
        except (NotFound, Conflict):
            # Deleted or disabled a moment ago: the next claim says which.
            return self._note(row, claimed_at, self.away, error="endpoint_away", wait=UNSENT_SECONDS)
        except (CustodyError, InternalFault):
            return self._note(row, claimed_at, "failed", error="unsigned", wait=self._wait(row, None))
        began = loop.time()
        if began - claimed_at > START_WITHIN_SECONDS:
            # After such a pause, another worker may have claimed the same delivery.
            return self._note(row, claimed_at, "unsent", error="late", wait=0)
        answer = await self._send(lane, row, url, headers, body)
        took = loop.time() - began
        lane.took(took, silent=answer.problem == "timeout")
        self.figures.seconds.observe(took)
        outcome, error = _judge(answer)
        self._note(
            row, claimed_at, outcome, error=error, status=answer.status, wait=self._wait(row, answer.retry_after)
        )
        return None

    def _wait(self, row: Any, retry_after: float | None) -> float:
        return wait_for(row["retry_backoff_ms"] / 1000, retry_after)

    async def _prepare(self, ports: Ports, row: Any) -> tuple[dict[str, str], str, bytes]:
        body = _body(row)
        return await _sign(ports, row, body), row["url"], body

    async def _send(self, lane: Lane, _row: Any, url: str, headers: dict[str, str], body: bytes) -> Answer:
        return await lane.receiver.post(url, headers, body)

    def _note(
        self,
        row: Any,
        claimed_at: float,
        outcome: Outcome,
        *,
        error: str | None,
        wait: float,
        status: int | None = None,
    ) -> None:
        self.figures.attempts.labels(error or outcome).inc()
        if error is not None:
            said = {"delivery": str(row["id"]), "endpoint": str(row["endpoint_id"]), "reason": error, "status": status}
            log.info("a delivery failed", extra=said)
        self._ended.append(
            Ended(row["tenant_id"], row["id"], row["attempt"], outcome, error, status, wait, claimed_at + CLAIM_SECONDS)
        )

    async def _settle(self, ports: Ports) -> None:
        now = asyncio.get_running_loop().time()
        self._ended = [one for one in self._ended if one.forget_at > now]
        for batch in list(batched(self._ended, _PER_STATEMENT)):
            columns: list[list[Any]] = [
                [one.tenant for one in batch],
                [one.id for one in batch],
                [one.attempt for one in batch],
                [one.outcome for one in batch],
                [one.error for one in batch],
                [one.status for one in batch],
                [one.wait for one in batch],
            ]
            # Kept until the database has them, so that an outcome survives a database that is away for a moment.
            settled = await self._write_down(ports, columns)
            done = {id(one) for one in batch if one.id in settled}
            self._ended = [one for one in self._ended if id(one) not in done]

    async def _drop_idle_lanes(self) -> None:
        now = asyncio.get_running_loop().time()
        idle = [
            endpoint
            for endpoint, lane in self._lanes.items()
            if not lane.under_way and now - lane.used_at > _IDLE_SECONDS
        ]
        for endpoint in idle:
            await self._lanes.pop(endpoint).receiver.close()


async def _sign(ports: Ports, row: Any, body: bytes) -> dict[str, str]:
    order = SignDelivery(row["tenant_id"], str(row["endpoint_id"]), str(row["id"]), int(clock.now().timestamp()), body)
    async with asyncio.timeout(SIGN_SECONDS):
        headers = msgspec.to_builtins(await ports.workers.tell(order, Origin(new_uuid())))
    return {"Content-Type": "application/json", "User-Agent": f"Custody-Webhooks/{VERSION}", **headers}


def _body(row: Any) -> bytes:
    if row["body"] is not None:
        return bytes(row["body"].encode())
    return envelope(
        id=str(row["event_id"]),
        event=row["event"],
        tenant=row["tenant_id"],
        agent=row["agent_id"],
        timestamp=clock.iso(row["created_at"]),
        data=row["data"],
    )


def _judge(answer: Answer) -> tuple[Outcome, str | None]:
    status = answer.status
    if status is None:
        return "failed", answer.problem
    if 200 <= status < 300:
        return "delivered", None
    if status == 410:
        return "gone", "gone"
    return "failed", "redirect" if 300 <= status < 400 else "status"


def wait_for(least: float, retry_after: float | None) -> float:
    """Seconds until another attempt: at least these, more if the receiver asks for it, and a little chance.

    Without chance, what failed at once would come back at once.
    """
    asked = min(retry_after or 0.0, RETRY_AFTER_MOST)
    return float(max(least, asked) * (1 + JITTER * secrets.randbelow(1001) / 1000))
