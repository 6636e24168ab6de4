"""Queries of one agent's dashboard."""

from collections.abc import Collection
from typing import Any

import msgspec

from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.refs import AgentRef
from custody.policies.parts import add_parts
from custody.policies.types import Spend

# What was signed in this day, ISO week and month, by the calendar and in UTC, of each asset. What was asked for before
# orders were kept with what they move counts its native value.
_SPENT = """
SELECT m.asset, COALESCE(sum(m.amount::numeric) FILTER (WHERE t.created_at >= date_trunc('day', n.at)), 0) AS today,
       COALESCE(sum(m.amount::numeric) FILTER (WHERE t.created_at >= date_trunc('week', n.at)), 0) AS week,
       COALESCE(sum(m.amount::numeric) FILTER (WHERE t.created_at >= date_trunc('month', n.at)), 0) AS month
  FROM (SELECT service_now() AT TIME ZONE 'UTC' AS at) n, LATERAL (
       SELECT t.created_at AT TIME ZONE 'UTC' AS created_at,
              COALESCE(t.moved::json, CASE WHEN t.kind = 'evm' AND t.value > 0 THEN
                json_build_object('evm:' || t.chain_id || ':native', t.value::text) END) AS moved
         FROM transactions t
        WHERE t.tenant_id = $1 AND t.agent_id = $2 AND t.status IN ('signed', 'broadcast', 'confirmed')
          AND t.created_at >= service_now() - interval '32 days') t, json_each_text(t.moved) AS m (asset, amount)
 GROUP BY m.asset HAVING count(*) FILTER (
       WHERE t.created_at >= least(date_trunc('week', n.at), date_trunc('month', n.at))) > 0
 ORDER BY m.asset
"""
_BUDGETS = """
SELECT asset,
COALESCE(sum(amount) FILTER (WHERE hour >= date_trunc('hour', service_now() - interval '24 hours')), 0) AS day,
       sum(amount) AS week
  FROM spend
 WHERE tenant_id = $1 AND agent_id = $2 AND hour >= date_trunc('hour', service_now() - interval '168 hours')
 GROUP BY asset
"""
_TOTALS = "SELECT asset, amount FROM spend_totals WHERE tenant_id = $1 AND agent_id = $2 AND asset = ANY ($3)"
_RECENT = """
SELECT id, kind, broadcast, to_address, value, moved, status, chain_id, tx_hash, created_at FROM transactions
 WHERE tenant_id = $1 AND agent_id = $2 ORDER BY created_at DESC, id LIMIT $3
"""
_WAITING = """
SELECT count(*) FROM approvals
 WHERE tenant_id = $1 AND agent_id = $2 AND status = 'pending' AND (expires_at IS NULL OR expires_at > service_now())
"""


class Read(msgspec.Struct, frozen=True):
    """The findings of one look at an agent; `budgets` has the spend of a day, of a week and of all time by asset."""

    spent: list[Any]
    budgets: dict[str, Spend]
    waiting: int
    recent: list[Any]


async def read(pool: Pool, ref: AgentRef, recent: int, totals: Collection[str]) -> Read:
    """Spend, budgets, waiting approvals and the newest transactions, as of one moment; sums ever of these assets."""
    async with tenant_scope(pool, ref.tenant) as connection:
        spent = await connection.fetch(_SPENT, ref.tenant, ref.agent)
        ledger = await _ledger(connection, ref, totals)
        waiting = await connection.fetchval(_WAITING, ref.tenant, ref.agent)
        newest = await connection.fetch(_RECENT, ref.tenant, ref.agent, recent)
    return Read(spent, ledger, waiting, newest)


async def ledger(pool: Pool, ref: AgentRef, totals: Collection[str]) -> dict[str, Spend]:
    """The spend of each asset in a day and in a week, and of these ever."""
    async with tenant_scope(pool, ref.tenant) as connection:
        return await _ledger(connection, ref, totals)


async def _ledger(connection: Connection, ref: AgentRef, totals: Collection[str]) -> dict[str, Spend]:
    budgets = await connection.fetch(_BUDGETS, ref.tenant, ref.agent)
    ever = await connection.fetch(_TOTALS, ref.tenant, ref.agent, list(totals)) if totals else []
    windows = add_parts((row["asset"], int(row["day"]), int(row["week"])) for row in budgets)
    sums = {row["asset"]: int(row["amount"]) for row in ever}
    return {name: Spend(*windows.get(name, (0, 0)), sums.get(name, 0)) for name in {**windows, **sums}}
