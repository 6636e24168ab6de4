"""Answers of the API, as far as they are put into words: unknown fields are ignored, missing ones are Malformed.

Amounts are decimal strings in the smallest unit, as the API has them; `amounts.py` makes them readable.

What there are ten thousand of says `gc=False`: it can hold no cycle, and to look for one would stop the screen.
"""

from typing import Any

import msgspec


class Effect(msgspec.Struct, frozen=True, gc=False):
    """One thing that the bytes do: `kind` is transfer, approval, fee or unread; earlier rows say opaque for unread."""

    kind: str
    asset: str | None = None
    amount: str = "0"
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    spender: str | None = None
    unlimited: bool = False
    nft: bool = False
    label: str | None = None
    unknown: bool = False
    size: int | None = None

    @property
    def unread(self) -> bool:
        """True if it stands for bytes that the service could not decode."""
        return self.kind in ("unread", "opaque")


class PolicyResult(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The result of one rule."""

    type: str
    passed: bool
    reason: str
    policy_id: str | None = None


class VoteGiven(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A vote: its voter and its time."""

    user_id: str
    voted_at: str


class Votes(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The number of named people who voted, and of votes still needed."""

    have: int
    need: int
    by: tuple[VoteGiven, ...] = ()
    waiting_for: tuple[str, ...] = ()


class Approval(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """One item of the queue; `digest` names exactly the order that is shown."""

    id: str
    tx_id: str
    agent_id: str
    agent_name: str
    status: str
    requested_at: str
    digest: str
    kind: str
    resolved_at: str | None = None
    resolved_by: str | None = None
    resolved_by_user_id: str | None = None
    resolved_by_name: str | None = None
    reason: str | None = None
    comment: str | None = None
    reference_id: str | None = None
    expires_at: str | None = None
    # When it is signed by itself, where nobody decides before.
    release_at: str | None = None
    to_address: str | None = None
    value: str | None = None
    chain_id: int | None = None
    effects: tuple[Effect, ...] = ()
    policy_results: tuple[PolicyResult, ...] = ()
    # None where nobody's vote is asked for.
    votes: Votes | None = None


class Transaction(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One order and what became of it."""

    id: str
    agent_id: str
    kind: str
    status: str
    created_at: str
    status_detail: str | None = None
    reason: str | None = None
    to_address: str | None = None
    value: str | None = None
    data: Any = None
    chain_id: int | None = None
    caip2: str | None = None
    nonce: int | None = None
    tx_hash: str | None = None
    settled_by: str | None = None
    broadcast: bool = False
    reference_id: str | None = None
    replaces_tx_id: str | None = None
    effects: list[Effect] = []
    policy_results: list[PolicyResult] = []
    signed_at: str | None = None
    broadcast_at: str | None = None
    confirmed_at: str | None = None


class TransactionPage(msgspec.Struct, frozen=True):
    """A page of an agent's transactions."""

    transactions: list[Transaction]
    total: int
    at_least: bool = msgspec.field(default=False, name="totalIsEstimate")


class Addresses(msgspec.Struct, frozen=True):
    """Addresses at which an agent is paid."""

    evm: str
    solana: str


class Agent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A wallet holder."""

    id: str
    name: str
    tenant_id: str
    wallet_addresses: Addresses
    created_at: str
    platform_id: str | None = None
    frozen_at: str | None = None
    frozen_reason: str | None = None


class PolicyRule(msgspec.Struct, frozen=True):
    """One rule of an agent."""

    type: str
    enabled: bool
    config: dict[str, Any]
    id: str | None = None
    # `agent` where the agent's own token set it.
    source: str | msgspec.UnsetType = msgspec.UNSET


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and what was spent of it."""

    policy_id: str
    window: str
    asset: str
    limit: str
    spent: str


class Spend(msgspec.Struct, frozen=True, rename="camel"):
    """Amounts signed, by the calendar, in UTC."""

    today: str
    this_week: str
    this_month: str


class NativeBalance(msgspec.Struct, frozen=True, rename="camel"):
    """The wallet's balance of a chain's own coin."""

    native: str
    chain_id: int
    symbol: str


class Dashboard(msgspec.Struct, frozen=True, rename="camel"):
    """One agent at a glance; a balance is None where no node answered."""

    balances: dict[str, NativeBalance | None]
    spend: Spend
    budgets: list[Budget]
    policies: list[PolicyRule]
    pending_approvals: int


class TokenFunds(msgspec.Struct, frozen=True):
    """One token, in its own words: anybody can call a token anything."""

    address: str
    symbol: str | None = None
    balance: str | None = None
    formatted: str | None = None
    decimals: int | None = None


class AgentTokens(msgspec.Struct, frozen=True, rename="camel"):
    """Balances of one wallet on one chain."""

    chain_id: int
    tokens: list[TokenFunds]
