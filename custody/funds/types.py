"""Funds as callers see them. Spec 1/4.1 (account, tokens)."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.errors import Invalid
from custody.kit.shapes import ChainId

MAX_TOKENS = 25


class BadToken(Invalid):
    """This is no address of a token on that chain."""


class TooManyTokens(Invalid):
    """Name at most 25 tokens."""


class FundsQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Which chain, the server's active one if none is named; and which tokens, addresses with commas between."""

    chain_id: ChainId | None = None
    tokens: Annotated[str, Meta(max_length=2000)] | None = None


class Held(msgspec.Struct, frozen=True):
    """An amount as it was found; None where it could not be known, and `note` says why."""

    address: str
    symbol: str | None = None
    amount: int | None = None
    decimals: int | None = None
    note: str | None = None


class NativeFunds(msgspec.Struct, frozen=True):
    """The chain's own coin."""

    symbol: str
    balance: str
    formatted: str


class TokenFunds(msgspec.Struct, frozen=True):
    """One token. What the token does not say, or not sensibly, is null."""

    address: str
    symbol: str | None
    balance: str | None
    formatted: str | None
    decimals: int | UnsetType = UNSET
    note: str | UnsetType = UNSET


class AgentTokens(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What one wallet holds on one chain; `native` is null and `note` says why where no node answered."""

    agent_id: str
    wallet_address: str
    chain_id: int
    native: NativeFunds | None
    tokens: list[TokenFunds]
    note: str | UnsetType = UNSET


class Wallet(msgspec.Struct, frozen=True, rename="camel"):
    """One address of an agent."""

    chain_family: str
    address: str


class NativeWorth(msgspec.Struct, frozen=True, rename="camel"):
    """The chain's own coin, and its worth where a price is known."""

    symbol: str
    formatted: str
    usd_value_text: str | UnsetType = UNSET


class TokenWorth(msgspec.Struct, frozen=True, rename="camel"):
    """One token, and its worth where a price is known."""

    address: str
    symbol: str | None
    balance: str | None
    formatted: str | None
    usd_value_text: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Portfolio(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the agent holds on one chain. The total is of what has a price, absent where nothing has."""

    chain_id: int
    native: NativeWorth | None
    tokens: list[TokenWorth]
    total_usd_text: str | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Sponsorship(msgspec.Struct, frozen=True):
    """Whether somebody else pays the fees."""

    enabled: bool


class AgentAccount(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An agent as an account. `capabilities` is what its wallets may be asked for; empty while it is frozen."""

    id: str
    type: str
    agent_id: str
    wallet_address: str
    wallets: list[Wallet]
    portfolio: Portfolio
    capabilities: list[str]
    sponsorship: Sponsorship
