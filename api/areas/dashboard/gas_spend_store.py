"""Queries of network fees: of orders that were signed to be broadcast, by when they were asked for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from custody.kit.db import Pool, tenant_scope
from custody.kit.reading import reading
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.protocol.signer.user_wallets import PREFIX

_WHERE = (
    "FROM transactions WHERE tenant_id = $1 AND created_at >= $2 AND created_at <= $3 "
    "AND ($4::text[] IS NULL OR agent_id = ANY ($4)) AND broadcast AND signature IS NOT NULL"
)
# Only names of this file enter the text; every value is a parameter.
_TOTALS = (
    f"SELECT chain_id, count(*) AS count, sum(fee::numeric) AS reserved, sum(fee_paid) AS paid {_WHERE} "
    "GROUP BY chain_id"
)
_PAGE = (
    f"SELECT id, agent_id, chain_id, status, status_detail, fee, fee_paid {_WHERE} "
    "ORDER BY created_at DESC, id LIMIT $5 OFFSET $6"
)
_WALLETS = "SELECT id FROM agents WHERE tenant_id = $1 AND id = ANY ($2)"
# The person's own wallets in their own tenant, and those of accounts that name the person as an owner.
_BY_EXTERNAL_ID = """
WITH named AS (SELECT external_id, user_id FROM wallet_external_ids WHERE tenant_id = $1 AND external_id = ANY ($2)),
owned AS (
  SELECT n.external_id, a.id
    FROM named n JOIN agents a ON a.tenant_id = $1 AND starts_with(a.id, $3 || n.user_id || '-')
  UNION
  SELECT n.external_id, a.id
    FROM accounts c CROSS JOIN LATERAL json_array_elements_text(c.owner_user_ids) o (owner)
    JOIN named n ON n.user_id::text = o.owner
    JOIN account_wallets w ON w.tenant_id = $1 AND w.account_id = c.id
    JOIN agents a ON a.tenant_id = $1 AND a.id = w.agent_id AND a.incarnation = w.incarnation
   WHERE c.tenant_id = $1)
SELECT n.external_id, COALESCE(array_agg(o.id ORDER BY o.id) FILTER (WHERE o.id IS NOT NULL), '{}') AS wallets
  FROM named n LEFT JOIN owned o ON o.external_id = n.external_id GROUP BY n.external_id
"""
_HAS_TENANT = "SELECT EXISTS (SELECT FROM tenants WHERE id = $1)"


class Range(msgspec.Struct, frozen=True):
    """The orders that count; `wallets` None: of every agent."""

    begin: datetime
    end: datetime
    wallets: list[str] | None


class Wallets(msgspec.Struct, frozen=True):
    """Agents that are there, and the wallets of each external id that is."""

    there: set[str]
    by_external_id: dict[str, list[str]]


async def wallets(pool: Pool, tenant: str, ids: Sequence[str], external_ids: Sequence[str]) -> Wallets | None:
    """Find the wallets that the ids mean in a tenant; None if there is no such tenant."""
    async with tenant_scope(pool, tenant) as connection:
        if not await connection.fetchval(_HAS_TENANT, tenant):
            return None
        there = await connection.fetch(_WALLETS, tenant, list(ids)) if ids else []
        named = await connection.fetch(_BY_EXTERNAL_ID, tenant, list(external_ids), PREFIX) if external_ids else []
    return Wallets({row["id"] for row in there}, {row["external_id"]: list(row["wallets"]) for row in named})


async def spend(
    pool: Pool, share: TenantSemaphore, tenant: str, range_: Range, limit: int, offset: int
) -> tuple[list[Any], list[Any]]:
    """Sums by chain of the whole range, and one page of it, the newest first."""
    values = (tenant, range_.begin, range_.end, range_.wallets)
    async with reading(pool, share, tenant) as connection:
        return await connection.fetch(_TOTALS, *values), await connection.fetch(_PAGE, *values, limit, offset)
