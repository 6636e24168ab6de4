"""Queries of names: whose wallet an address is."""

from collections.abc import Collection
from typing import Any, Final

import msgspec

from custody.kit.db import Pool, tenant_scope

# Wallets have no index by address: of a tenant with more agents than this none is looked for.
MOST_AGENTS: Final = 10_000
_MOST_FOUND: Final = 100
_COUNT: Final = "SELECT count(*) FROM (SELECT FROM agents WHERE tenant_id = $1 LIMIT $2) a"
_NAMES: Final = (
    "SELECT w.agent_id, a.name FROM wallets w JOIN agents a ON a.tenant_id = w.tenant_id AND a.id = w.agent_id "
    "WHERE w.tenant_id = $1 AND w.scope = '' AND w.address = ANY ($2) ORDER BY w.agent_id LIMIT $3"
)


class Owners(msgspec.Struct, frozen=True):
    """The ids of agents with one of some addresses; not complete where the tenant has too many to look."""

    agents: list[str]
    complete: bool


async def owners(pool: Pool, tenant: str, addresses: Collection[str]) -> Owners:
    """Find the tenant's agents with one of these addresses, as rows say it: the signer must vouch for each."""
    async with tenant_scope(pool, tenant) as connection:
        if await connection.fetchval(_COUNT, tenant, MOST_AGENTS + 1) > MOST_AGENTS:
            return Owners([], complete=False)
        rows: list[Any] = await connection.fetch(_NAMES, tenant, list(addresses), _MOST_FOUND)
    return Owners(list(dict.fromkeys(row["agent_id"] for row in rows)), complete=len(rows) < _MOST_FOUND)
