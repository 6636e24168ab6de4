"""The holdings of an agent on one chain, as far as nodes tell. docs/wallets.md.

Best effort: what no node tells is null with a note beside it, and the rest is answered all the same.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from api.areas.agents import shown
from api.areas.agents.balance import in_whole_units
from api.areas.funds import erc20, spl
from api.areas.funds.types import (
    MAX_TOKENS,
    AgentAccount,
    AgentTokens,
    FundsQuery,
    Held,
    NativeFunds,
    NativeWorth,
    Portfolio,
    Sponsorship,
    TokenFunds,
    TokenWorth,
    TooManyTokens,
    Wallet,
)
from custody.chains import prices
from custody.chains.built_in import WALLETS
from custody.chains.family import Chain
from custody.chains.nodes import nodes_of
from custody.chains.rpc import Rpc
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.agents import Agent
from custody.protocol.signer.order_refusals import UnknownChain

# Of one wallet, whatever its node and its tokens do.
SECONDS = 15.0
CAPABILITIES = tuple(name for family in WALLETS.values() for name in family.capabilities)


class TokenReader(Protocol):
    """A module that knows the tokens of one family."""

    def token_address(self, text: str, /) -> str:
        """The address of a token in its one spelling, or BadToken."""

    async def balances(self, rpc: Rpc, chain: Chain, owner: str, tokens: Sequence[str], /) -> list[Held]:
        """Read a wallet's balances of the tokens named, or of all that a node can tell."""


# Which tokens a wallet of a family holds; none where a family has no tokens.
TOKENS: Final[Mapping[str, TokenReader]] = {"evm": erc20, "solana": spl}


class Holdings(msgspec.Struct, frozen=True):
    """The holdings of an address on one chain, as far as nodes tell."""

    native: Held
    tokens: list[Held]
    note: str | UnsetType = UNSET


class _Found(msgspec.Struct, frozen=True):
    """One wallet on one chain."""

    agent: Agent
    chain: Chain
    address: str
    holds: Holdings


async def tokens(ports: Ports, ref: AgentRef, query: FundsQuery) -> AgentTokens:
    """The native coin and the tokens of the agent's wallet on one chain."""
    found = await _find(ports, ref, query)
    native = found.holds.native
    return AgentTokens(
        agent_id=ref.agent,
        wallet_address=found.address,
        chain_id=found.chain.id,
        native=None
        if native.amount is None
        else NativeFunds(found.chain.symbol, str(native.amount), in_whole_units(native.amount, found.chain.decimals)),
        tokens=[_token(one) for one in found.holds.tokens],
        note=found.holds.note,
    )


async def account(ports: Ports, ref: AgentRef, query: FundsQuery) -> AgentAccount:
    """The agent as an account: its wallets, and what one of them holds and is worth."""
    found = await _find(ports, ref, query)
    agent = found.agent
    return AgentAccount(
        id=agent.id,
        type="agent",
        agent_id=agent.id,
        wallet_address=found.address,
        wallets=[Wallet(family, agent.wallet_addresses.of(family)) for family in WALLETS],
        portfolio=_portfolio(found, ports.prices),
        capabilities=[] if agent.frozen_at else list(CAPABILITIES),
        sponsorship=Sponsorship(enabled=False),
    )


async def _find(ports: Ports, ref: AgentRef, query: FundsQuery) -> _Found:
    chain = ports.chains.active if query.chain_id is None else ports.chains.find(query.chain_id)
    if chain is None:
        raise UnknownChain(f"Chain {query.chain_id} is not configured here.")
    tokens = TOKENS.get(chain.family)
    wanted = token_names(query.tokens, tokens.token_address) if tokens else []
    agent = await shown.get(ports, ref)
    address = agent.wallet_addresses.of(chain.family)
    return _Found(agent, chain, address, await holdings(ports, ref.tenant, chain, address, wanted))


async def holdings(ports: Ports, tenant: str, chain: Chain, address: str, named: Sequence[str]) -> Holdings:
    """Read an address' holdings on a chain: the coin, and the tokens named, or all that a node can tell."""
    tokens = TOKENS.get(chain.family)
    native, held, notes = Held(""), [Held(token) for token in named], []
    share = await ports.node_shares.of(ports.pool, tenant)
    try:
        async with asyncio.timeout(SECONDS):
            rpc = ports.rpc.looking(share).brief
            native = Held("", amount=await nodes_of(chain).balance(rpc, chain, address), decimals=chain.decimals)
            held = await tokens.balances(rpc, chain, address, named) if tokens else []
    except UpstreamFailed as problem:
        notes.append(problem.message)
    except TimeoutError:
        notes.append("The node took too long to answer.")
    if len(held) > MAX_TOKENS:
        notes.append(
            f"The wallet holds {len(held)} tokens; these are the first {MAX_TOKENS}. Name others with `tokens`."
        )
    return Holdings(native, held[:MAX_TOKENS], " ".join(notes) or UNSET)


def token_names(given: str | None, parse: Callable[[str], str]) -> list[str]:
    """The tokens that were named, each once."""
    texts = [text.strip() for text in given.split(",")] if given is not None else []
    if len(texts) > MAX_TOKENS:
        raise TooManyTokens
    return list(dict.fromkeys(parse(text) for text in texts))


def _token(held: Held) -> TokenFunds:
    decimals = UNSET if held.decimals is None else held.decimals
    return TokenFunds(held.address, held.symbol, *amounts(held), decimals=decimals, note=held.note or UNSET)


def amounts(held: Held) -> tuple[str | None, str | None]:
    """An amount in the smallest unit and in whole ones, as far as both are known."""
    if held.amount is None:
        return None, None
    # Nothing is nothing in any unit.
    unknown = held.decimals is None and held.amount != 0
    return str(held.amount), None if unknown else in_whole_units(held.amount, held.decimals or 0)


def _portfolio(found: _Found, listed: prices.Prices) -> Portfolio:
    chain, native = found.chain, None
    family = WALLETS[chain.family]
    worths: list[Decimal] = []
    if found.holds.native.amount is not None:
        usd = _worth(listed, family.native_asset, chain.symbol, found.holds.native, worths)
        native = NativeWorth(chain.symbol, in_whole_units(found.holds.native.amount, chain.decimals), usd)
    shown = [
        TokenWorth(
            one.address,
            one.symbol,
            *amounts(one),
            _worth(listed, family.token_asset(chain.id, one.address), one.symbol, one, worths),
            one.note or UNSET,
        )
        for one in found.holds.tokens
    ]
    return Portfolio(
        chain_id=chain.id,
        native=native,
        tokens=shown,
        note=found.holds.note,
        total_usd_text=prices.text(prices.total(worths)) if worths else UNSET,
    )


def _worth(listed: prices.Prices, asset: str, symbol: str | None, held: Held, worths: list[Decimal]) -> str | UnsetType:
    usd = prices.worth(listed.find(asset, symbol), held.amount, held.decimals)
    if usd is None:
        return UNSET
    worths.append(usd)
    return prices.text(usd)
