"""Queries of policy rules. Only the signer writes them; what is read here is for showing, never for judging."""

from typing import Annotated

import msgspec

from custody.kit.db import Pool, tenant_scope
from custody.kit.described import described
from custody.kit.errors import NotFound, Unavailable
from custody.kit.refs import AgentRef
from custody.policies.kinds import PolicyRule
from custody.policies.rules import load_rule
from custody.policies.sources import split_type
from custody.policies.types import InvalidPolicy


class AgentAbsent(NotFound):
    """No such agent."""


class PolicyUnreadable(Unavailable):
    """The stored policies of this agent fail their integrity check; nothing is signed. Contact the operator."""

    code = "policy_tampered"


class PolicyVersion(msgspec.Struct, frozen=True):
    """The version of the rules in force."""

    version: Annotated[int, described("Counts up with every change of the rules.")]


async def version_of(pool: Pool, ref: AgentRef) -> PolicyVersion:
    """The version of an agent's rules."""
    async with tenant_scope(pool, ref.tenant) as connection:
        version = await connection.fetchval(
            "SELECT policy_version FROM agents WHERE tenant_id = $1 AND id = $2", ref.tenant, ref.agent
        )
    if version is None:
        raise AgentAbsent
    return PolicyVersion(version)


async def all_of(pool: Pool, ref: AgentRef) -> list[PolicyRule]:
    """An agent's rules in stored order."""
    async with tenant_scope(pool, ref.tenant) as connection:
        rows = await connection.fetch(
            "SELECT r.id, r.type, r.enabled, r.config FROM agents a LEFT JOIN policy_rules r ON r.tenant_id = "
            "a.tenant_id AND r.agent_id = a.id "
            "WHERE a.tenant_id = $1 AND a.id = $2 ORDER BY r.position",
            ref.tenant,
            ref.agent,
        )
    if not rows:
        raise AgentAbsent
    return [to_public(*row) for row in rows if row["id"] is not None]


def to_public(rule_id: str, stored: str, enabled: bool, config: str) -> PolicyRule:
    """A rule from its row; PolicyUnreadable for one that nobody can read."""
    kind, by_agent = split_type(stored)
    try:
        rule = load_rule(rule_id, kind, enabled, config)
    except InvalidPolicy:
        raise PolicyUnreadable from None
    return msgspec.structs.replace(rule, source="agent") if by_agent else rule
