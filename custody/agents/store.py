"""Queries of agents."""

from typing import Any

from custody.agents.types import Agent, AgentAbsent, WalletAddresses
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page
from custody.kit.refs import AgentRef


async def get(pool: Pool, ref: AgentRef) -> Agent:
    """One agent, in one round trip; AgentAbsent if there is none."""
    row = await pool.fetchrow("SELECT * FROM agent_get($1, $2)", ref.tenant, ref.agent)
    if row is None:
        raise AgentAbsent
    return _agent(ref.tenant, row)


async def all_of(pool: Pool, tenant: str, page: Page) -> Listed:
    """A tenant's agents, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(
            "SELECT * FROM agents WHERE tenant_id = $1 ORDER BY created_at DESC, id LIMIT $2 OFFSET $3",
            tenant,
            page.limit,
            page.offset,
        )
        total = await connection.fetchval("SELECT count(*) FROM agents WHERE tenant_id = $1", tenant)
    return Listed([_agent(tenant, row) for row in rows], total)


def _agent(tenant: str, row: Any) -> Agent:
    return Agent(
        id=row["id"], name=row["name"], platform_id=row["platform_id"], tenant_id=tenant,
        wallet_addresses=WalletAddresses(row["evm_address"], row["solana_address"]),
        created_at=clock.iso(row["created_at"]),
        frozen_at=clock.iso(row["frozen_at"]) if row["frozen_at"] else None, frozen_reason=row["frozen_reason"],
    )  # fmt: skip
