"""Funds as callers see them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import ChainId

MAX_TOKENS = 25


class BadToken(Invalid):
    """Not a token address on this chain."""


class TooManyTokens(Invalid):
    """tokens: name at most 25 tokens."""


class FundsQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The chain, the server's active one if none is named; and the tokens, addresses with commas between."""

    chain_id: Annotated[ChainId | None, described("The chain; without it the active one of the deployment.")] = None
    tokens: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2000)] | None,
        described("Addresses of tokens, with commas between; at most 25."),
    ] = None


class Held(msgspec.Struct, frozen=True):
    """An amount as it was found; None where it could not be known, and `note` says why."""

    address: str
    symbol: str | None = None
    amount: int | None = None
    decimals: int | None = None
    note: str | None = None


class NativeFunds(msgspec.Struct, frozen=True):
    """The chain's native coin."""

    symbol: Annotated[str, described("The coin's symbol, such as `ETH`.")]
    balance: Annotated[str, described("The balance in the smallest unit.")]
    formatted: Annotated[str, described("The balance in whole coins.")]


class TokenFunds(msgspec.Struct, frozen=True):
    """One token. Fields that the token does not report, or reports in an unusable form, are null."""

    address: Annotated[str, described("The token's contract or mint.")]
    symbol: Annotated[str | None, described("The token's symbol, as it says itself.")]
    balance: Annotated[str | None, described("The balance in the smallest unit.")]
    formatted: Annotated[str | None, described("The balance in whole tokens.")]
    decimals: Annotated[int | UnsetType, described("The token's decimals.")] = UNSET
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class AgentTokens(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The holdings of one wallet on one chain; if no node responded, `native` is null and `note` says why."""

    agent_id: Annotated[str, described("The agent.")]
    wallet_address: Annotated[str, described("The agent's address on this chain.")]
    chain_id: Annotated[int, described("The chain: its EIP-155 number, or 101 for Solana.")]
    native: Annotated[NativeFunds | None, described("The native coin; null if no node responded.")]
    tokens: Annotated[list[TokenFunds], described("The tokens.")]
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class Wallet(msgspec.Struct, frozen=True, rename="camel"):
    """One address of an agent."""

    chain_family: Annotated[str, described("The family of chains, such as `evm`.")]
    address: Annotated[str, described("The address.")]


class NativeWorth(msgspec.Struct, frozen=True, rename="camel"):
    """The chain's native coin, and its value if a price is known."""

    symbol: Annotated[str, described("The coin's symbol, such as `ETH`.")]
    formatted: Annotated[str, described("The balance in whole coins.")]
    usd_value_text: Annotated[str | UnsetType, described("Its value in US dollars, by the operator's price.")] = UNSET


class TokenWorth(msgspec.Struct, frozen=True, rename="camel"):
    """One token, and its value if a price is known."""

    address: Annotated[str, described("The token's contract or mint.")]
    symbol: Annotated[str | None, described("The token's symbol, as it says itself.")]
    balance: Annotated[str | None, described("The balance in the smallest unit.")]
    formatted: Annotated[str | None, described("The balance in whole tokens.")]
    usd_value_text: Annotated[str | UnsetType, described("Its value in US dollars, by the operator's price.")] = UNSET
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class Portfolio(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The agent's holdings on one chain. The total covers assets with a price; absent if none has one."""

    chain_id: Annotated[int, described("The chain: its EIP-155 number, or 101 for Solana.")]
    native: Annotated[NativeWorth | None, described("The native coin; null if no node responded.")]
    tokens: Annotated[list[TokenWorth], described("The tokens.")]
    total_usd_text: Annotated[str | UnsetType, described("The sum in US dollars of what has a price.")] = UNSET
    note: Annotated[str | UnsetType, described("Why something is null.")] = UNSET


class Sponsorship(msgspec.Struct, frozen=True):
    """Sponsorship of the fees by another account."""

    enabled: Annotated[bool, described("Always false: the wallet pays its own fees.")]


class AgentAccount(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An agent as an account. `capabilities` lists what its wallets can do; empty while it is frozen."""

    id: Annotated[str, described("The account's id.")]
    type: Annotated[str, described("The type of account.")]
    agent_id: Annotated[str, described("The agent.")]
    wallet_address: Annotated[str, described("The agent's EVM address.")]
    wallets: Annotated[list[Wallet], described("The agent's addresses.")]
    portfolio: Annotated[Portfolio, described("Holdings on one chain.")]
    capabilities: Annotated[list[str], described("Capabilities of its wallets; empty while it is frozen.")]
    sponsorship: Annotated[Sponsorship, described("Sponsorship of its fees.")]
