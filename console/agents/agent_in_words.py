"""One agent at a glance, in lines: whether it is frozen, what it holds, spends and may, and what it did last. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from console.agents.glance import Glance
from console.agents.spending import DAYS, Spending, sparkline
from console.orders.became import state
from console.orders.limits import limits
from console.orders.order import Known, Order
from console.rules.rules_in_words import rules_in_words
from console.texts.amounts import coins, in_coins, quoted
from console.texts.chains import CHAINS, EVM, chain_name, native_coin
from console.texts.moments import ago, clock, moment
from console.texts.plain import clipped
from console.texts.said import Heading, Said
from console.wire.shapes import Agent
from console.wire.shapes_agents import Portfolio, RecentTransaction

_TEXT: Final = 300


def agent_in_words(agent: Agent, seen: Glance | None, now: datetime, *, tenant_frozen: bool = False) -> list[Said]:
    """All of it; without a glance what the list knows."""
    lines = [*_state(agent, now, tenant_frozen=tenant_frozen), *_who(agent)]
    if seen is None:
        return [*lines, Said(""), Said("Asking for the rest…", "quiet")]
    if seen.trouble:
        lines.append(Said(f"Not all could be asked: {clipped(seen.trouble, _TEXT)}", "warn"))
    waiting = seen.dashboard.pending_approvals
    lines.append(Said(_waiting(waiting), "warn" if waiting else "quiet"))
    return [
        *lines, *_holdings(seen), *_spent(seen), *_limits(agent, seen),
        *_headed("Last orders", [line for one in seen.dashboard.recent_transactions for line in _recent(one, now)]),
        *_headed("Rules", rules_in_words(seen.dashboard.policies)),
    ]  # fmt: skip


def frozen_words(agent: Agent) -> str:
    """Whether an agent is frozen, for a list."""
    reason = clipped(agent.frozen_reason or "no reason given", 80)
    return f"FROZEN: {reason}" if agent.frozen_at else "active"


def _state(agent: Agent, now: datetime, *, tenant_frozen: bool) -> list[Said]:
    lines = []
    if tenant_frozen:
        lines.append(Said("THE WHOLE TENANT IS FROZEN: nothing is signed for any agent.", "bad"))
    if agent.frozen_at:
        then = moment(agent.frozen_at)
        lines += [
            Said(f"FROZEN since {clock(then)} ({ago(then, now)} ago): nothing is signed for it.", "bad"),
            Said(f"Reason: {quoted(agent.frozen_reason, 1_000) if agent.frozen_reason else 'none was given'}", "bad"),
        ]
    return lines


def _waiting(number: int) -> str:
    if number == 1:
        return "1 approval waits for a person"
    return f"{number:,} approvals wait for a person" if number else "nothing waits for a person"


def _who(agent: Agent) -> list[Said]:
    return [
        Heading(clipped(agent.name, _TEXT)), Said(f"id       {agent.id}"),
        Said(f"EVM      {agent.wallet_addresses.evm}"), Said(f"Solana   {agent.wallet_addresses.solana}"),
        Said(f"made     {clock(moment(agent.created_at))}", "quiet"),
    ]  # fmt: skip


def _holdings(seen: Glance) -> list[Said]:
    lines: list[Said] = []
    for family, balance in seen.dashboard.balances.items():
        if balance is None:
            lines.append(Said(f"{family.upper()}: no node answered, so what it holds is not known now.", "quiet"))
        else:
            held = native_coin("evm:native", balance.chain_id) or EVM
            worth = _worth(_native_worth(seen, balance.chain_id))
            lines.append(Said(f"{chain_name(balance.chain_id)}: {coins(balance.native, held)}{worth}"))
    if seen.account:
        lines += _tokens(seen.account.portfolio)
    if (solana := seen.solana) is not None:
        if solana.native is None:
            lines.append(Said("Solana: no node answered, so what it holds is not known now.", "quiet"))
        else:
            held_there = f"{solana.native.formatted} {clipped(solana.native.symbol, 24)}"
            lines.append(Said(f"{chain_name(solana.chain_id)}: {held_there}{_worth(solana.native.usd_value_text)}"))
        lines += _tokens(solana)
    return _headed("Holds", lines)


def _native_worth(seen: Glance, chain_id: int) -> str | None:
    portfolio = seen.account.portfolio if seen.account else None
    return (
        portfolio.native.usd_value_text if portfolio and portfolio.native and portfolio.chain_id == chain_id else None
    )


def _tokens(portfolio: Portfolio) -> list[Said]:
    lines = []
    for token in portfolio.tokens:
        symbol = f" of what calls itself {quoted(token.symbol, 24)}" if token.symbol else ""
        held = clipped(token.formatted or token.balance or "an amount that is not known", _TEXT)
        lines.append(Said(f"  {held}{symbol}{_worth(token.usd_value_text)}"))
        lines.append(Said(f"    token {clipped(token.address, _TEXT)}", "quiet"))
    if portfolio.total_usd_text:
        lines.append(Said(f"  in all {portfolio.total_usd_text} USD, of what has a price", "quiet"))
    return lines


def _worth(usd: str | None) -> str:
    return f" = {clipped(usd, 40)} USD" if usd else ""


def _spent(seen: Glance) -> list[Said]:
    spend = seen.dashboard.spend
    lines = [
        Said(f"{window:<11}{coins(amount, EVM)}")
        for window, amount in (("today", spend.today), ("this week", spend.this_week), ("this month", spend.this_month))
    ]
    return _headed("Spent, in the own coins of EVM chains (UTC)", [*lines, *_by_day(seen.spending)])


def _by_day(spent: Spending | None) -> list[Said]:
    if spent is None:
        return []
    first, last = spent.days[0].date, spent.days[-1].date
    lines = [Said(f"{first:%d %b} {sparkline(spent.days)} {last:%d %b}  the last {DAYS} days")]
    lines += [Said(f"  {day.date:%d %b}  {in_coins(day.spent, EVM)}") for day in reversed(spent.days) if day.spent]
    if spent.left_out:
        lines.append(Said(f"? Not all was read: {spent.left_out:,} older orders are left out.", "warn"))
    elif not any(day.spent for day in spent.days):
        lines.append(Said("  nothing in these days", "quiet"))
    return lines


def _limits(agent: Agent, seen: Glance) -> list[Said]:
    nothing = Order(agent.id, "evm", None, None, None, [], [])
    return _headed("Limits", limits(nothing, Known(budgets=seen.dashboard.budgets)))


def _recent(one: RecentTransaction, now: datetime) -> list[Said]:
    word = "waits for a person" if one.status == "pending_approval" else state(one.status, one.status_detail)[0]
    chain = CHAINS.get(one.chain_id or 0)
    amount = coins(one.value, chain.coin if chain else EVM) if one.value is not None else "no native value"
    where = f" on {chain_name(one.chain_id)}" if one.chain_id is not None else ""
    to = [Said(f"  to {clipped(one.to_address, _TEXT)}", "quiet")] if one.to_address else []
    return [Said(f"{ago(moment(one.created_at), now):>4} ago  {word}: {amount}{where}"), *to]


def _headed(title: str, lines: Sequence[Said]) -> list[Said]:
    """Lines under a heading, in a block of their own; nothing for none."""
    return [Said(""), Heading(title), *(Said(f"  {line.text}", line.tone) for line in lines)] if lines else []
