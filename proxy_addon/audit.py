"""One audit row per request of a known agent: queued, written in batches, never silently lost. Design 7.

A row holds no body, no query and no credential. While the queue is full requests are refused: nothing goes out that
could not be written down. A killed process loses the rows that wait (those of WRITE_SECONDS, or all since the database
went away) and those of requests under way.
"""

import asyncio

import asyncpg
import msgspec

from custody.kit import clock
from custody.kit.db import DatabaseAway, Pool
from custody.kit.logs import logger
from proxy_addon.exchange import Exchange

log = logger("proxy")
QUEUE = 10_000
BATCH = 500
WRITE_SECONDS = 0.5
_PATH = 512
_WRITE = "SELECT proxy_audit($1, $2, $3, $4, $5, $6, $7, $8)"


class AuditTrail:
    """The queue and its writer."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._rows: list[tuple[object, ...]] = []
        self._promised = 0
        self._due = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._rows)

    def promise(self) -> bool:
        """Keep a place for a request that begins; false when there is none left."""
        if len(self._rows) + self._promised >= QUEUE:
            return False
        self._promised += 1
        return True

    def keep(self, exchange: Exchange) -> None:
        """The row of a request that has ended, in the place promised to it."""
        self._promised -= 1
        try:
            self._rows.append(_row(exchange))
        except Exception:  # a row that says little is better than none
            log.exception("an audit row could not be made", extra={"request_id": exchange.request_id})
            self._rows.append(_least(exchange))
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
            await self.flush()

    async def flush(self) -> bool:
        """Write everything that is queued; false when the database is away, then the rows stay queued."""
        while self._rows:
            batch = self._rows[:BATCH]
            try:
                await self._insert(batch)
            except DatabaseAway as problem:
                log.warning("audit rows wait", extra={"rows": len(self._rows), "reason": type(problem).__name__})
                return False
            del self._rows[: len(batch)]
        return True

    async def _insert(self, batch: list[tuple[object, ...]]) -> None:
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


def _least(exchange: Exchange) -> tuple[object, ...]:
    claims = exchange.claims
    tenant, agent = (claims.tid, claims.sub) if claims else ("", "")
    return tenant, agent, "-", "{}", exchange.request_id, exchange.address, None, clock.now()


def _row(exchange: Exchange) -> tuple[object, ...]:
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
        "requestBytes": exchange.request_bytes,
        "responseBytes": exchange.response_bytes,
        "milliseconds": round(exchange.seconds * 1000),
    }
    tenant, agent = (claims.tid, claims.sub) if claims else ("", "")
    return (
        tenant, agent, host, msgspec.json.encode(metadata).decode(), exchange.request_id, exchange.address,
        exchange.user_agent, clock.now(),
    )  # fmt: skip
