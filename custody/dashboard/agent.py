"""One agent at a glance: wallet, balance, spend, budgets, policies, approvals, recent transactions. Spec 1/4.10."""

from typing import Any

import msgspec

from custody.agents import store as agents
from custody.agents.balance import Balances, formatted, native
from custody.chains.types import EVM_NATIVE
from custody.kit import clock
from custody.kit.db import tenant_scope
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.policies import store as policies
from custody.policies.types import PolicyRule
from custody.ports import Ports
from custody.transactions.store import number

RECENT = 5
DECIMALS = 18
# The document's own words: what was signed in this day, ISO week and month, by the calendar and in UTC.
_SPENT = """
SELECT COALESCE(sum(value) FILTER (WHERE created_at >= date_trunc('day', n.at)), 0) AS today,
       COALESCE(sum(value) FILTER (WHERE created_at >= date_trunc('week', n.at)), 0) AS week,
       COALESCE(sum(value) FILTER (WHERE created_at >= date_trunc('month', n.at)), 0) AS month
  FROM (SELECT service_now() AT TIME ZONE 'UTC' AS at) n, LATERAL (
       SELECT t.value, t.created_at AT TIME ZONE 'UTC' AS created_at FROM transactions t
        WHERE t.tenant_id = $1 AND t.agent_id = $2 AND t.kind = 'evm'
          AND t.status IN ('signed', 'broadcast', 'confirmed')
          AND t.created_at >= service_now() - interval '32 days') t
"""
_BUDGETS = """
SELECT asset,
COALESCE(sum(amount) FILTER (WHERE hour >= date_trunc('hour', service_now() - interval '24 hours')), 0) AS day,
       sum(amount) AS week
  FROM spend
 WHERE tenant_id = $1 AND agent_id = $2 AND hour >= date_trunc('hour', service_now() - interval '168 hours')
 GROUP BY asset
"""
_RECENT = """
SELECT id, to_address, value, status, chain_id, tx_hash, created_at FROM transactions
 WHERE tenant_id = $1 AND agent_id = $2 ORDER BY created_at DESC, id LIMIT $3
"""


class AgentCard(msgspec.Struct, frozen=True, rename="camel"):
    """Who it is."""

    id: str
    tenant_id: str
    name: str
    wallet_address: str
    created_at: str


class Spend(msgspec.Struct, frozen=True, rename="camel"):
    """Native EVM value of what was signed, by the calendar."""

    today: str
    this_week: str
    this_month: str
    today_formatted: str
    this_week_formatted: str
    this_month_formatted: str


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and what is left of it, from the ledger that enforces it."""

    policy_id: str
    window: str
    asset: str
    limit: str
    spent: str
    remaining: str


class Dashboard(msgspec.Struct, frozen=True, rename="camel"):
    """Everything at once; `balances.evm` is null when no node answers."""

    agent: AgentCard
    balances: dict[str, Balances | None]
    spend: Spend
    budgets: list[Budget]
    policies: list[PolicyRule]
    pending_approvals: int
    recent_transactions: list[dict[str, Any]]


async def dashboard(ports: Ports, ref: AgentRef) -> Dashboard:
    """One agent at a glance."""
    agent = await agents.get(ports.pool, ref)
    rules = await policies.all_of(ports.pool, ref)
    async with tenant_scope(ports.pool, ref.tenant) as connection:
        spent = await connection.fetchrow(_SPENT, ref.tenant, ref.agent)
        ledger = {
            row["asset"]: (int(row["day"]), int(row["week"]))
            for row in await connection.fetch(_BUDGETS, ref.tenant, ref.agent)
        }
        waiting = await connection.fetchval(
            "SELECT count(*) FROM approvals WHERE tenant_id = $1 AND agent_id = $2 AND status = 'pending' "
            "AND (expires_at IS NULL OR expires_at > service_now())",
            ref.tenant, ref.agent,
        )  # fmt: skip
        recent = await connection.fetch(_RECENT, ref.tenant, ref.agent, RECENT)
    card = AgentCard(agent.id, ref.tenant, agent.name, agent.wallet_addresses.evm, agent.created_at)
    return Dashboard(
        card, {"evm": await _balance(ports, agent.wallet_addresses.evm)}, _spend(spent), _budgets(rules, ledger),
        rules, waiting,
        [_recent(ref.agent, row) for row in recent],
    )  # fmt: skip


async def _balance(ports: Ports, address: str) -> Balances | None:
    chain = ports.chains.active
    if chain.family != "evm" or not chain.rpc_urls:
        return None
    try:
        return await native(ports, chain, address)
    except UpstreamFailed:
        return None


def _spend(row: Any) -> Spend:
    amounts = [int(row[name]) for name in ("today", "week", "month")]
    return Spend(*(str(amount) for amount in amounts), *(formatted(amount, DECIMALS) for amount in amounts))


def _budgets(rules: list[PolicyRule], ledger: dict[str, tuple[int, int]]) -> list[Budget]:
    found = []
    for rule in rules:
        if rule.type != "spending-limit" or not rule.enabled or rule.id is None:
            continue
        # Without an asset a rule limits each chain family's native one; this page shows the EVM wallet.
        asset = str(rule.config.get("asset") or EVM_NATIVE)
        for name, window, place in (("maxPerDay", "day", 0), ("maxPerWeek", "week", 1)):
            if name in rule.config:
                limit, spent = int(rule.config[name]), ledger.get(asset, (0, 0))[place]
                found.append(Budget(rule.id, window, asset, str(limit), str(spent), str(max(0, limit - spent))))
    return found


def _recent(agent: str, row: Any) -> dict[str, Any]:
    return {
        "id": str(row["id"]), "agentId": agent, "toAddress": row["to_address"], "value": number(row["value"]),
        "status": row["status"],
        "chainId": row["chain_id"], "txHash": row["tx_hash"], "createdAt": clock.iso(row["created_at"]),
    }  # fmt: skip
