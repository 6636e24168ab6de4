"""Queries of tenants. What looks across tenants goes through the listed SECURITY DEFINER functions."""

import msgspec

from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page
from custody.tenants.types import FLAGS, Stats, Tenant, TenantAbsent, TenantConfig, TenantConfigBody


async def get(pool: Pool, tenant: str) -> Tenant:
    """The caller's own tenant."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT id, name, created_at, frozen_at FROM tenants WHERE id = $1", tenant)
    if row is None:
        raise TenantAbsent
    return Tenant(
        row["id"], row["name"], clock.iso(row["created_at"]), clock.iso(row["frozen_at"]) if row["frozen_at"] else None
    )


async def get_config(pool: Pool, tenant: str) -> TenantConfig:
    """The configuration as it is read: what was saved over the defaults (every feature on)."""
    async with tenant_scope(pool, tenant) as connection:
        text = await connection.fetchval("SELECT document FROM tenant_config WHERE tenant_id = $1", tenant)
    saved = msgspec.json.decode(text, type=TenantConfigBody) if text else TenantConfigBody()
    return TenantConfig(
        tenant_id=tenant, display_name=saved.display_name, policy_exposure=saved.policy_exposure,
        approval_config=saved.approval_config,
        feature_flags=dict.fromkeys(FLAGS, True) | saved.feature_flags,
    )  # fmt: skip


async def platform_get(pool: Pool, tenant: str) -> Tenant:
    """Any tenant, with the number of its agents."""
    row = await pool.fetchrow("SELECT * FROM platform_tenant($1)", tenant)
    if row is None:
        raise TenantAbsent
    frozen = clock.iso(row["frozen_at"]) if row["frozen_at"] else None
    return Tenant(row["id"], row["name"], clock.iso(row["created_at"]), frozen, row["agent_count"])


async def platform_all(pool: Pool, page: Page) -> Listed:
    """Every tenant, newest first."""
    rows = await pool.fetch("SELECT * FROM platform_tenants($1, $2)", page.limit, page.offset)
    found = [
        Tenant(
            row["id"],
            row["name"],
            clock.iso(row["created_at"]),
            clock.iso(row["frozen_at"]) if row["frozen_at"] else None,
        )
        for row in rows
    ]
    total = rows[0]["total"] if rows else (await platform_stats(pool)).tenants
    return Listed(found, total)


async def platform_stats(pool: Pool) -> Stats:
    """The whole deployment in three figures."""
    row = await pool.fetchrow("SELECT * FROM platform_stats()")
    return Stats(row["tenants"], row["agents"], row["transactions"])
