"""Queries of policy rules. Only the signer writes them; what is read here is for showing, never for judging."""

import msgspec

from custody.kit.db import Pool, tenant_scope
from custody.kit.errors import NotFound
from custody.kit.refs import AgentRef
from custody.policies.types import PolicyRule


class AgentAbsent(NotFound):
    """There is no such agent."""


async def all_of(pool: Pool, ref: AgentRef) -> list[PolicyRule]:
    """An agent's rules in stored order."""
    async with tenant_scope(pool, ref.tenant) as connection:
        rows = await connection.fetch(
            "SELECT r.id, r.type, r.enabled, r.config FROM agents a LEFT JOIN policy_rules r ON r.tenant_id = "
            "a.tenant_id AND r.agent_id = a.id "
            "WHERE a.tenant_id = $1 AND a.id = $2 ORDER BY r.position",
            ref.tenant, ref.agent,
        )  # fmt: skip
    if not rows:
        raise AgentAbsent
    return [
        PolicyRule(id=row["id"], type=row["type"], enabled=row["enabled"], config=msgspec.json.decode(row["config"]))
        for row in rows
        if row["id"] is not None
    ]
