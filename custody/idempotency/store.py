"""Queries of idempotency figures."""

from typing import Any

import msgspec

from custody.idempotency.types import TTL_MS, Counters, IdempotencyMetrics
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope

_NAMES = Counters.__struct_fields__


async def get(pool: Pool, tenant: str) -> IdempotencyMetrics:
    """Read the counts of a tenant since its first request with a key."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT * FROM idempotency_counts WHERE tenant_id = $1", tenant)
    now = clock.iso(clock.now())
    if row is None:
        return IdempotencyMetrics(tenant, now, None, None, TTL_MS, Counters())
    counters = Counters(**{name: row[name] for name in _NAMES})
    times = clock.iso(row["window_started_at"]), clock.iso(row["last_seen_at"])
    return IdempotencyMetrics(tenant, now, *times, TTL_MS, counters)


async def add(pool: Pool, counted: list[dict[str, Any]]) -> None:
    """Add figures of several tenants, in one statement."""
    await pool.execute("SELECT add_idempotency_counts($1)", msgspec.json.encode(counted).decode())
