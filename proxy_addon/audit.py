"""One audit row per request of a known agent: queued, written in batches, never silently lost.

A row holds no body, no query and no credential. While the queue is full requests are refused: nothing goes out that
could not be written down. A killed process loses the rows that wait (those of WRITE_SECONDS, or all since the database
went away), those of requests under way, and the numbers of this minute's many refusals.
"""

import asyncio

import asyncpg
import msgspec

from custody.kit import clock, ids
from custody.kit.db import DatabaseAway, Pool
from custody.kit.fair_slots import Bounds, FairSlots
from custody.kit.logs import logger
from proxy_addon.exchange import Exchange
from proxy_addon.payment import Payment
from proxy_addon.peer import Agent
from proxy_addon.refusals import Number, Refusals

log = logger("proxy")
# Places in the queue: all, of an agent, of a tenant; and what is kept back for tenants that have few.
QUEUE = 10_000
MAX_QUEUED_OF_AGENT, MAX_QUEUED_OF_TENANT = 3_000, 4_000
QUEUE_KEPT_BACK, FEW_QUEUED = 1_000, 100
BATCH = 500
WRITE_SECONDS = 0.5
_PATH = 512
_WRITE = "SELECT proxy_audit($1, $2, $3, $4, $5, $6, $7, $8)"
Row = tuple[object, ...]


class AuditTrail:
    """The queue and its writer."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        # With the agent whose place each of them has; the row of a number has none.
        self._rows: list[tuple[Agent | None, Row]] = []
        self._places = FairSlots(
            Bounds(QUEUE, MAX_QUEUED_OF_AGENT, MAX_QUEUED_OF_TENANT, reserve=QUEUE_KEPT_BACK, few=FEW_QUEUED)
        )
        self._due = asyncio.Event()
        self.refusals = Refusals()

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._rows)

    def promise(self, agent: Agent) -> bool:
        """Keep a place for a request that begins; false when there is none left for its agent."""
        return self._places.take(agent) is None

    def keep(self, exchange: Exchange) -> None:
        """The row of a request that has ended, in the place promised to it; one refusal of many is only counted."""
        agent = (exchange.claims.tid, exchange.claims.sub) if exchange.claims else ("", "")
        if not self.refusals.told_alone(exchange):
            self._places.give_back(agent)
            return
        try:
            self._rows.append((agent, _row(exchange)))
        except Exception:  # a row that says little is better than none
            log.exception("an audit row could not be made", extra={"request_id": exchange.request_id})
            self._rows.append((agent, _least(exchange)))
        if len(self._rows) >= BATCH:
            self._due.set()

    async def write(self) -> None:
        """Write what is queued, every half a second or when a batch is full, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            self._rows += [(None, _row_of_number(number)) for number in self.refusals.due()]
            await self.flush()

    async def end(self) -> bool:
        """Write everything, this minute's numbers too, as far as the database is there; false when it is away."""
        self._rows += [(None, _row_of_number(number)) for number in self.refusals.due(all_of_them=True)]
        return await self.flush()

    async def flush(self) -> bool:
        """Write everything that is queued; false when the database is away, then the rows stay queued."""
        while self._rows:
            batch = self._rows[:BATCH]
            try:
                await self._insert([row for _, row in batch])
            except DatabaseAway as problem:
                log.warning("audit rows wait", extra={"rows": len(self._rows), "reason": type(problem).__name__})
                return False
            del self._rows[: len(batch)]
            for agent, _ in batch:
                if agent is not None:
                    self._places.give_back(agent)
        return True

    async def _insert(self, batch: list[Row]) -> None:
        """Write a batch; a row that the database does not take must not hold up the others for ever."""
        try:
            await self._pool.execute(_WRITE, *(list(column) for column in zip(*batch, strict=True)))
        except DatabaseAway:
            raise
        except (asyncpg.PostgresError, asyncpg.DataError) as problem:
            if len(batch) == 1:
                log.error("an audit row was not taken", extra={"request_id": batch[0][4], "reason": str(problem)})
                return
            middle = len(batch) // 2
            await self._insert(batch[:middle])
            await self._insert(batch[middle:])


def _row_of_number(number: Number) -> Row:
    metadata = {
        "status": number.status,
        "refused": number.code,
        "count": number.count,
        "since": clock.iso(number.since),
        "at": clock.iso(clock.now()),
    }
    said = msgspec.json.encode(metadata).decode()
    return *number.agent, "-", said, ids.new_uuid(), number.address, None, clock.now()


def _least(exchange: Exchange) -> Row:
    claims = exchange.claims
    tenant, agent = (claims.tid, claims.sub) if claims else ("", "")
    return tenant, agent, "-", "{}", exchange.request_id, exchange.address, None, clock.now()


def _payment_of(payment: Payment) -> dict[str, str | None]:
    """The payment, and the hash of what the upstream says became of it, which is its claim and no more."""
    paid = payment.paid
    if paid is None:
        return {}
    return {"paymentTxId": paid.tx_id, "paymentResponseHash": payment.claim}


def _row(exchange: Exchange) -> Row:
    target, claims = exchange.target, exchange.claims
    host = f"{target.host}:{target.port}" if target else "-"
    told = exchange.refusal.code if exchange.refusal else None
    metadata = {
        "method": exchange.method,
        "host": host,
        "path": target.path[:_PATH] if target else None,
        "form": exchange.form,
        "status": exchange.status,
        "refused": told,
        "abandoned": exchange.abandoned,
        "routeId": exchange.route_id,
        "secretId": exchange.secret_id,
        "secretVersion": exchange.secret_version,
        "injected": exchange.injected,
        **(_payment_of(exchange.payment) if exchange.payment is not None else {}),
        "requestBytes": exchange.request_bytes,
        "responseBytes": exchange.response_bytes,
        "milliseconds": round(exchange.seconds * 1000),
        # The row's own time is the database's, later where rows had to wait for it.
        "at": clock.iso(clock.now()),
    }
    if (charge := exchange.charge) is not None and charge.id is not None:
        metadata |= {"chargeId": charge.id, "chargedMicroUsd": charge.micro_usd}
    tenant, agent = (claims.tid, claims.sub) if claims else ("", "")
    return (
        tenant,
        agent,
        host,
        msgspec.json.encode(metadata).decode(),
        exchange.request_id,
        exchange.address,
        exchange.user_agent,
        clock.now(),
    )
