"""One agent at a glance, in lines: whether it is frozen, what it holds, spends and may, and what it did last. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from console.agents.agent_summary import AgentSummary
from console.agents.spending import DAYS, Spending, sparkline
from console.rules.rules_in_words import rules_in_words
from console.wire.shapes_agents import Portfolio, RecentTransaction
from words.orders.limits import limits
from words.orders.order import Known, Order
from words.orders.outcome_lines import state
from words.shapes import Agent
from words.texts.amounts import coins, in_coins, quote
from words.texts.chains import CHAINS, EVM, chain_name, native_coin
from words.texts.lines import Heading, Line
from words.texts.moments import ago, clock, moment
from words.texts.plain import clip

_TEXT: Final = 300


def agent_in_words(
    agent: Agent, seen: AgentSummary | None, now: datetime, *, tenant_frozen: bool = False
) -> list[Line]:
    """All of it; without a glance what the list knows."""
    lines = [*_state(agent, now, tenant_frozen=tenant_frozen), *_who(agent)]
    if seen is None:
        return [*lines, Line(""), Line("Loading the rest…", "quiet")]
    if seen.trouble:
        lines.append(Line(f"Some details are missing: {clip(seen.trouble, _TEXT)}", "warn"))
    waiting = seen.dashboard.pending_approvals
    lines.append(Line(_waiting(waiting), "warn" if waiting else "quiet"))
    return [
        *lines,
        *_holdings(seen),
        *_spending(seen),
        *_limits(agent, seen),
        *_section("Last orders", [line for one in seen.dashboard.recent_transactions for line in _recent(one, now)]),
        *_section("Rules", rules_in_words(seen.dashboard.policies)),
    ]


def frozen_words(agent: Agent) -> str:
    """Say in a list whether an agent is frozen."""
    reason = clip(agent.frozen_reason or "no reason given", 80)
    return f"FROZEN: {reason}" if agent.frozen_at else "active"


def _state(agent: Agent, now: datetime, *, tenant_frozen: bool) -> list[Line]:
    lines = []
    if tenant_frozen:
        lines.append(Line("THE WHOLE TENANT IS FROZEN: no order is signed for any agent.", "bad"))
    if agent.frozen_at:
        then = moment(agent.frozen_at)
        lines += [
            Line(f"FROZEN since {clock(then)} ({ago(then, now)} ago): no order is signed for it.", "bad"),
            Line(f"Reason: {quote(agent.frozen_reason, 1_000) if agent.frozen_reason else 'none was given'}", "bad"),
        ]
    return lines


def _waiting(number: int) -> str:
    if number == 1:
        return "1 approval pending"
    return f"{number:,} approvals pending" if number else "no approvals pending"


def _who(agent: Agent) -> list[Line]:
    return [
        Heading(clip(agent.name, _TEXT)),
        Line(f"id       {agent.id}"),
        Line(f"EVM      {agent.wallet_addresses.evm}"),
        Line(f"Solana   {agent.wallet_addresses.solana}"),
        Line(f"made     {clock(moment(agent.created_at))}", "quiet"),
    ]


def _holdings(seen: AgentSummary) -> list[Line]:
    lines: list[Line] = []
    for family, balance in seen.dashboard.balances.items():
        if balance is None:
            lines.append(Line(f"{family.upper()}: no node answered, so its balance is unknown.", "quiet"))
        else:
            held = native_coin("evm:native", balance.chain_id) or EVM
            worth = _worth(_native_worth(seen, balance.chain_id))
            lines.append(Line(f"{chain_name(balance.chain_id)}: {coins(balance.native, held)}{worth}"))
    if seen.account:
        lines += _tokens(seen.account.portfolio)
    if (solana := seen.solana) is not None:
        if solana.native is None:
            lines.append(Line("Solana: no node answered, so its balance is unknown.", "quiet"))
        else:
            held_there = f"{solana.native.formatted} {clip(solana.native.symbol, 24)}"
            lines.append(Line(f"{chain_name(solana.chain_id)}: {held_there}{_worth(solana.native.usd_value_text)}"))
        lines += _tokens(solana)
    return _section("Holds", lines)


def _native_worth(seen: AgentSummary, chain_id: int) -> str | None:
    portfolio = seen.account.portfolio if seen.account else None
    return (
        portfolio.native.usd_value_text if portfolio and portfolio.native and portfolio.chain_id == chain_id else None
    )


def _tokens(portfolio: Portfolio) -> list[Line]:
    lines = []
    for token in portfolio.tokens:
        symbol = f" of a token that calls itself {quote(token.symbol, 24)}" if token.symbol else ""
        held = clip(token.formatted or token.balance or "an unknown amount", _TEXT)
        lines.append(Line(f"  {held}{symbol}{_worth(token.usd_value_text)}"))
        lines.append(Line(f"    token {clip(token.address, _TEXT)}", "quiet"))
    if portfolio.total_usd_text:
        lines.append(Line(f"  in all {portfolio.total_usd_text} USD, of assets with a price", "quiet"))
    return lines


def _worth(usd: str | None) -> str:
    return f" = {clip(usd, 40)} USD" if usd else ""


def _spending(seen: AgentSummary) -> list[Line]:
    spend = seen.dashboard.spend
    lines = [
        Line(f"{window:<11}{coins(amount, EVM)}")
        for window, amount in (("today", spend.today), ("this week", spend.this_week), ("this month", spend.this_month))
    ]
    return _section("Spent, in native coins of EVM chains (UTC)", [*lines, *_by_day(seen.spending)])


def _by_day(spent: Spending | None) -> list[Line]:
    if spent is None:
        return []
    first, last = spent.days[0].date, spent.days[-1].date
    lines = [Line(f"{first:%d %b} {sparkline(spent.days)} {last:%d %b}  the last {DAYS} days")]
    lines += [Line(f"  {day.date:%d %b}  {in_coins(day.spent, EVM)}") for day in reversed(spent.days) if day.spent]
    if spent.left_out:
        lines.append(Line(f"? Incomplete:  {spent.left_out:,} older orders are not included.", "warn"))
    elif not any(day.spent for day in spent.days):
        lines.append(Line("  nothing in this period", "quiet"))
    return lines


def _limits(agent: Agent, seen: AgentSummary) -> list[Line]:
    nothing = Order(agent.id, "evm", None, None, None, [], [])
    return _section("Limits", limits(nothing, Known(budgets=seen.dashboard.budgets)))


def _recent(one: RecentTransaction, now: datetime) -> list[Line]:
    word = "waits for a person" if one.status == "pending_approval" else state(one.status, None)[0]
    chain = CHAINS.get(one.chain_id or 0)
    amount = coins(one.value, chain.coin if chain else EVM) if one.value is not None else "no native value"
    where = f" on {chain_name(one.chain_id)}" if one.chain_id is not None else ""
    to = [Line(f"  to {clip(one.to_address, _TEXT)}", "quiet")] if one.to_address else []
    return [Line(f"{ago(moment(one.created_at), now):>4} ago  {word}: {amount}{where}"), *to]


def _section(title: str, lines: Sequence[Line]) -> list[Line]:
    """Lines under a heading, in a block of their own; nothing for none."""
    return [Line(""), Heading(title), *(Line(f"  {line.text}", line.tone) for line in lines)] if lines else []
