"""Queries of what was asked in the past, and of what counts now."""

from collections import Counter
from collections.abc import AsyncIterator, Collection
from datetime import datetime, timedelta
from typing import Any

from api.areas.simulation.past import Stored, of_row
from api.areas.simulation.replay import Ledger, hour_of
from custody.kit.db import Pool, tenant_scope
from custody.kit.refs import AgentRef
from custody.policies.parts import names

PAGE = 100
_SPEND = "SELECT asset, hour, amount FROM spend WHERE tenant_id = $1 AND agent_id = $2"
_TOTALS = "SELECT asset, amount FROM spend_totals WHERE tenant_id = $1 AND agent_id = $2 AND asset = ANY ($3)"
_CUT = """
SELECT created_at FROM transactions
 WHERE tenant_id = $1 AND agent_id = $2 AND created_at > $3 AND created_at <= $4
 ORDER BY created_at DESC OFFSET $5 LIMIT 1
"""
_ROWS = """
SELECT t.id, t.kind, t.order_text, t.chain_id, t.caip2, t.to_address, t.fee, t.status, p.id IS NOT NULL AS queued,
       t.created_at, t.signed_at, t.replaces_tx_id,
       CASE WHEN t.kind IN ('bitcoin', 'x402', 'solana_x402') THEN t.effects END AS effects,
       t.moved::json ->> 'usd' AS worth
  FROM transactions t LEFT JOIN approvals p ON p.tenant_id = $1 AND p.tx_id = t.id
 WHERE t.tenant_id = $1 AND t.agent_id = $2 AND t.created_at >= $3 AND (t.created_at, t.id) > ($3, $4)
   AND t.created_at <= $5
 ORDER BY t.created_at, t.id LIMIT $6
"""
_LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


async def now_and_ledger(pool: Pool, ref: AgentRef, totals: Collection[str]) -> tuple[datetime, Ledger]:
    """The database's present moment, and the spend that counts in it, as far back as it is kept.

    Of the assets named also all that was ever spent: what is older than that is in the first hour of all.
    """
    async with tenant_scope(pool, ref.tenant) as connection:
        now = await connection.fetchval("SELECT service_now()")
        spend: dict[str, Counter[int]] = {}
        for row in await connection.fetch(_SPEND, ref.tenant, ref.agent):
            for name in names(row["asset"]):
                spend.setdefault(name, Counter())[hour_of(row["hour"])] += int(row["amount"])
        for row in await connection.fetch(_TOTALS, ref.tenant, ref.agent, list(totals)) if totals else ():
            buckets = spend.setdefault(row["asset"], Counter())
            buckets[0] += max(0, int(row["amount"]) - buckets.total())
    return now, Ledger(spend)


async def begin_of(pool: Pool, ref: AgentRef, until: datetime, back: timedelta, most: int) -> tuple[datetime, bool]:
    """The moment after which at most so many requests were asked, and whether older ones are left out by it."""
    since = until - back
    async with tenant_scope(pool, ref.tenant) as connection:
        cut = await connection.fetchval(_CUT, ref.tenant, ref.agent, since, until, most)
    return (since, False) if cut is None else (cut, True)


async def pages(pool: Pool, ref: AgentRef, since: datetime, until: datetime) -> AsyncIterator[list[Stored]]:
    """The requests after a moment, oldest first, a page at a time: the bodies of all at once may be large."""
    last: tuple[datetime, Any] = (since, _LAST_ID)
    while True:
        async with tenant_scope(pool, ref.tenant) as connection:
            rows = await connection.fetch(_ROWS, ref.tenant, ref.agent, *last, until, PAGE)
        if rows:
            yield [of_row(row) for row in rows]
        if len(rows) < PAGE:
            return
        last = (rows[-1]["created_at"], rows[-1]["id"])
