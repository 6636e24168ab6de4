"""One agent at a glance: wallet, balance, spend, budgets, policies, approvals, recent transactions."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from api.areas.agents import shown
from api.areas.agents.balance import Balances, in_whole_units, native
from api.areas.dashboard import store
from api.areas.policies import store as policies
from api.areas.transactions.redaction import hash_is_secret
from custody.chains.evm.family import coin_chain, coin_of
from custody.chains.kinds import Kind
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.table import ChainTable
from custody.kit import clock
from custody.kit.db import Pool
from custody.kit.described import Id, Instant, described
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.policies.assets import unit_of
from custody.policies.kinds import PolicyRule
from custody.policies.kinds.spending_limit import SpendingLimitRule
from custody.policies.types import Spend as Spent
from custody.policies.types import Window
from custody.ports import Ports
from custody.transactions.store import number
from custody.transactions.types import Status

RECENT = 5
ASSET_SEEN = "The asset as rules name it; the coin of an EVM chain is `evm:<chainId>:native`, rent is `solana:rent`."
SYMBOL_SEEN = "Its symbol, if this deployment knows it."
DECIMALS_SEEN = "Its decimals, if this deployment knows them."
DECIMALS = 18
_decode_moved = msgspec.json.Decoder(dict[str, str]).decode


class AgentCard(msgspec.Struct, frozen=True, rename="camel"):
    """The agent."""

    id: Annotated[str, described("The agent's id.")]
    tenant_id: Annotated[str, described("The tenant.")]
    name: Annotated[str, described("The agent's name.")]
    wallet_address: Annotated[str, described("The agent's EVM address.")]
    created_at: Annotated[Instant, described("Time of creation.")]


class AssetSpend(msgspec.Struct, frozen=True, rename="camel"):
    """The spending of one asset, by calendar period: the sum of transfers, finite approvals and rent."""

    asset: Annotated[str, described(ASSET_SEEN)]
    symbol: Annotated[str | None, described(SYMBOL_SEEN)]
    decimals: Annotated[int | None, described(DECIMALS_SEEN)]
    today: Annotated[str, described("In the smallest unit, since midnight UTC.")]
    this_week: Annotated[str, described("In the smallest unit, since Monday UTC.")]
    this_month: Annotated[str, described("In the smallest unit, since the first of the month UTC.")]


class Amount(msgspec.Struct, frozen=True):
    """The amount of one asset that an order moves."""

    asset: Annotated[str, described(ASSET_SEEN)]
    symbol: Annotated[str | None, described(SYMBOL_SEEN)]
    decimals: Annotated[int | None, described(DECIMALS_SEEN)]
    amount: Annotated[str, described("Amount in the smallest unit.")]


class Spend(msgspec.Struct, frozen=True, rename="camel"):
    """The sums that signed transactions moved, by calendar period: native EVM value, and each asset by itself."""

    today: Annotated[str, described("Wei, since midnight UTC.")]
    this_week: Annotated[str, described("Wei, since Monday UTC.")]
    this_month: Annotated[str, described("Wei, since the first of the month UTC.")]
    today_formatted: Annotated[str, described("`today` in whole coins.")]
    this_week_formatted: Annotated[str, described("`thisWeek` in whole coins.")]
    this_month_formatted: Annotated[str, described("`thisMonth` in whole coins.")]
    assets: Annotated[list[AssetSpend], described("Every asset of which something was spent, tokens too.")]


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and its remainder, from the ledger that enforces it."""

    policy_id: Annotated[str, described("The rule that sets the limit.")]
    window: Annotated[
        Window, described("The span that the limit counts: rolling 24 hours, rolling 7 days, or all time.")
    ]
    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    limit: Annotated[str, described("The limit in the smallest unit.")]
    spent: Annotated[str, described("Amount spent of it.")]
    remaining: Annotated[str, described("Amount left.")]


class RecentTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """One order in a few words."""

    id: Annotated[Id, described("The transaction's id.")]
    agent_id: Annotated[str, described("The agent.")]
    kind: Annotated[Kind, described("Kind of order.")]
    to_address: Annotated[str | None, described("The address that it goes to; of a token payment the contract.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    moved: Annotated[list[Amount], described("Amounts that it moves or would move, by asset, tokens too.")]
    status: Annotated[Status, described("Progress.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    tx_hash: Annotated[str | None, described("The hash, or on Solana the signature.")]
    created_at: Annotated[Instant, described("Time of the request.")]


class Dashboard(msgspec.Struct, frozen=True, rename="camel"):
    """The agent at a glance; `balances.evm` is null if no node responds."""

    agent: Annotated[AgentCard, described("The agent.")]
    balances: Annotated[dict[str, Balances | None], described("Balances by chain family; null if no node responds.")]
    spend: Annotated[Spend, described("Amounts spent.")]
    budgets: Annotated[list[Budget], described("The rolling limits of the policies.")]
    policies: Annotated[
        list[PolicyRule], described("The policy rules; a `maxPerTransaction` is shown as `maxPerTx` too.")
    ]
    pending_approvals: Annotated[int, described("Number of orders that wait for a person.")]
    recent_transactions: Annotated[list[RecentTransaction], described("The newest five transactions.")]
    note: Annotated[str | UnsetType, described("Why a balance is null, with the node that gave none.")] = UNSET


async def dashboard(ports: Ports, ref: AgentRef) -> Dashboard:
    """One agent at a glance."""
    agent = await shown.get(ports, ref)
    rules = await policies.all_of(ports.pool, ref)
    read = await store.read(ports.pool, ref, RECENT, _totals_of(rules))
    card = AgentCard(agent.id, ref.tenant, agent.name, agent.wallet_addresses.of("evm"), agent.created_at)
    balance, note = await _balance(ports, ref.tenant, agent.wallet_addresses.of("evm"))
    return Dashboard(
        card,
        {"evm": balance},
        _spend(read.spent, ports.chains),
        _budgets(rules, read.budgets),
        [_limit_shown(rule) for rule in rules],
        read.waiting,
        [_recent(ref.agent, row, ports.chains) for row in read.recent],
        note,
    )


async def budgets(pool: Pool, ref: AgentRef, rules: list[PolicyRule]) -> list[Budget]:
    """The limits of an agent's rules, and what was spent of each, without anything else of this page."""
    return _budgets(rules, await store.ledger(pool, ref, _totals_of(rules)))


def _limit_shown(rule: PolicyRule) -> PolicyRule:
    """The rule, with its limit on one order under the name that this page has for it, too."""
    if not isinstance(rule, SpendingLimitRule) or rule.config.max_per_transaction in (UNSET, None):
        return rule
    config = msgspec.structs.replace(rule.config, max_per_tx=rule.config.max_per_transaction)
    return msgspec.structs.replace(rule, config=config)


async def _balance(ports: Ports, tenant: str, address: str) -> tuple[Balances | None, str | UnsetType]:
    chain = ports.chains.active
    if chain.family != "evm" or not chain.rpc_urls:
        return None, UNSET
    try:
        return await native(ports, tenant, chain, address), UNSET
    except (UpstreamFailed, NodeCallsSpent) as problem:
        return None, problem.message


def _spend(rows: list[Any], chains: ChainTable) -> Spend:
    # The specification's three figures add the coins of all EVM chains up as if they were one coin.
    coins = [row for row in rows if coin_chain(row["asset"]) is not None]
    today, week, month = (sum(int(row[name]) for row in coins) for name in ("today", "week", "month"))
    return Spend(
        today=str(today),
        this_week=str(week),
        this_month=str(month),
        today_formatted=in_whole_units(today, DECIMALS),
        this_week_formatted=in_whole_units(week, DECIMALS),
        this_month_formatted=in_whole_units(month, DECIMALS),
        assets=[_asset_spend(row, chains) for row in rows],
    )


def _asset_spend(row: Any, chains: ChainTable) -> AssetSpend:
    asset = row["asset"]
    # A coin whose asset name has no chain has one symbol on all chains of its family, so any chain serves.
    chain = next((one.id for one in chains.all_of(asset.partition(":")[0])), None)
    amounts = (str(int(row[name])) for name in ("today", "week", "month"))
    return AssetSpend(asset, *_unit(asset, chains, chain), *amounts)


def _unit(asset: str, chains: ChainTable, chain_id: int | None) -> tuple[str | None, int | None]:
    unit = unit_of(asset, chains.units, chain_id)
    return (unit.symbol, unit.decimals) if unit else (None, None)


def _totals_of(rules: list[PolicyRule]) -> frozenset[str]:
    """The assets of which some limit counts all that was ever spent."""
    limiting = [rule.config.terms() for rule in rules if rule.enabled and rule.keeps_limits]
    return frozenset[str]().union(*(terms.wants().totals for terms in limiting))


def _budgets(rules: list[PolicyRule], ledger: dict[str, Spent]) -> list[Budget]:
    """The limits of the enabled rules; one without an asset limits the EVM wallet's, which this page shows."""
    found = []
    # Only these rules are read: a list of a thousand addresses takes a millisecond.
    for rule in (rule for rule in rules if rule.enabled and rule.keeps_limits):
        for limit in rule.config.terms().limits("evm"):
            spent = ledger.get(limit.asset, Spent(0, 0)).within(limit.window)
            left = max(0, limit.most - spent)
            found.append(Budget(rule.id or "", limit.window, limit.asset, str(limit.most), str(spent), str(left)))
    return found


def _recent(agent: str, row: Any, chains: ChainTable) -> RecentTransaction:
    # Viewers see this page as well.
    secret = hash_is_secret(row["kind"], row["status"], broadcast=row["broadcast"])
    return RecentTransaction(
        id=str(row["id"]),
        agent_id=agent,
        kind=row["kind"],
        to_address=row["to_address"],
        value=number(row["value"]),
        moved=[Amount(asset, *_unit(asset, chains, row["chain_id"]), amount) for asset, amount in _moves(row)],
        status=row["status"],
        chain_id=row["chain_id"],
        tx_hash=None if secret else row["tx_hash"],
        created_at=clock.iso(row["created_at"]),
    )


def _moves(row: Any) -> list[tuple[str, str]]:
    if row["moved"] is not None:
        return list(_decode_moved(row["moved"]).items())
    # Rows of an older version have no `moved`; their native value is all that is known.
    return [(coin_of(row["chain_id"]), str(int(row["value"])))] if row["kind"] == "evm" and row["value"] else []
