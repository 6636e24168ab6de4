"""Answers of the API about agents, as far as their screens read them. See `shapes.py`."""

import msgspec

from words.shapes import Budget, Dashboard, Effect, PolicyResult


class RecentTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """One of the newest orders of an agent, in short."""

    id: str
    status: str
    created_at: str
    to_address: str | None = None
    value: str | None = None
    chain_id: int | None = None


class AgentDashboard(Dashboard, frozen=True, rename="camel", kw_only=True):
    """One agent at a glance, with its newest orders."""

    recent_transactions: list[RecentTransaction]


class Worth(msgspec.Struct, frozen=True, rename="camel"):
    """The chain's own coin, and what it is worth where the operator lists a price."""

    symbol: str
    formatted: str
    usd_value_text: str | None = None


class TokenWorth(msgspec.Struct, frozen=True, rename="camel"):
    """One token, in its own words, and what it is worth."""

    address: str
    symbol: str | None = None
    balance: str | None = None
    formatted: str | None = None
    usd_value_text: str | None = None
    note: str | None = None


class Portfolio(msgspec.Struct, frozen=True, rename="camel"):
    """An agent's holdings on one chain; `native` is None and `note` says why where no node answered."""

    chain_id: int
    tokens: list[TokenWorth]
    native: Worth | None = None
    total_usd_text: str | None = None
    note: str | None = None


class Account(msgspec.Struct, frozen=True):
    """Balances of an agent's addresses on one chain."""

    portfolio: Portfolio


class Tenant(msgspec.Struct, frozen=True, rename="camel"):
    """The tenant itself; `frozen_at` while nothing of any agent is signed."""

    id: str
    name: str
    frozen_at: str | None = None


class Frozen(msgspec.Struct, frozen=True, rename="camel"):
    """The state of an agent's or a tenant's freeze."""

    frozen: bool
    frozen_at: str | None = None
    reason: str | None = None


class Fee(msgspec.Struct, frozen=True):
    """The highest possible network fee, in the smallest unit."""

    asset: str
    max: str


class Simulated(msgspec.Struct, frozen=True):
    """The result of signing an order now: `decision` is sign, queue or refuse."""

    decision: str
    results: list[PolicyResult]
    effects: list[Effect]
    budgets: list[Budget]
    needed: list[str]
    fee: Fee | None = None
