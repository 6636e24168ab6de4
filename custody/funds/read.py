"""What an agent holds on one chain, as far as nodes tell. Spec 1/4.1 (account, tokens), decision record 0032.

Best effort: what no node tells is null with a note beside it, and the rest is answered all the same.
"""

import asyncio
from collections.abc import Callable
from decimal import Decimal

import msgspec
from msgspec import UNSET, UnsetType
from solders.pubkey import Pubkey

from custody.agents import store
from custody.agents.balance import UnknownChain, formatted
from custody.agents.types import Agent
from custody.chains import prices
from custody.chains.evm import rpc as evm_rpc
from custody.chains.evm.address import BadAddress, parse_address
from custody.chains.solana import rpc as solana_rpc
from custody.chains.table import Chain
from custody.funds import erc20, spl
from custody.funds.types import (
    MAX_TOKENS,
    AgentAccount,
    AgentTokens,
    BadToken,
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
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.ports import Ports

# Of one wallet, whatever its node and its tokens do.
SECONDS = 15.0
CAPABILITIES = ("sign", "sign-typed-data", "sign-solana")


class _Found(msgspec.Struct, frozen=True):
    """One wallet on one chain."""

    agent: Agent
    chain: Chain
    address: str
    native: Held
    tokens: list[Held]
    note: str | UnsetType = UNSET


async def tokens(ports: Ports, ref: AgentRef, query: FundsQuery) -> AgentTokens:
    """The native coin and the tokens of the agent's wallet on one chain."""
    found = await _found(ports, ref, query)
    native = found.native
    return AgentTokens(
        agent_id=ref.agent, wallet_address=found.address, chain_id=found.chain.id,
        native=None if native.amount is None
        else NativeFunds(found.chain.symbol, str(native.amount), formatted(native.amount, found.chain.decimals)),
        tokens=[_token(one) for one in found.tokens],
        note=found.note,
    )  # fmt: skip


async def account(ports: Ports, ref: AgentRef, query: FundsQuery) -> AgentAccount:
    """The agent as an account: its wallets, and what one of them holds and is worth."""
    found = await _found(ports, ref, query)
    agent = found.agent
    return AgentAccount(
        id=agent.id, type="agent", agent_id=agent.id, wallet_address=found.address,
        wallets=[Wallet("evm", agent.wallet_addresses.evm), Wallet("solana", agent.wallet_addresses.solana)],
        portfolio=_portfolio(found, ports.prices),
        capabilities=[] if agent.frozen_at else list(CAPABILITIES), sponsorship=Sponsorship(enabled=False),
    )  # fmt: skip


async def _found(ports: Ports, ref: AgentRef, query: FundsQuery) -> _Found:
    chain = ports.chains.active if query.chain_id is None else ports.chains.find(query.chain_id)
    if chain is None:
        raise UnknownChain(f"Chain {query.chain_id} is not known here.")
    named = _named(query.tokens, _evm_token if chain.family == "evm" else _mint)
    agent = await store.get(ports.pool, ref)
    address = agent.wallet_addresses.evm if chain.family == "evm" else agent.wallet_addresses.solana
    ask = evm_rpc.balance if chain.family == "evm" else solana_rpc.balance
    ask_tokens = erc20.held if chain.family == "evm" else spl.held
    native, held, notes = Held(""), [Held(token) for token in named], []
    try:
        async with asyncio.timeout(SECONDS):
            native = Held("", amount=await ask(ports.rpc, chain, address), decimals=chain.decimals)
            held = await ask_tokens(ports.rpc, chain, address, named)
    except UpstreamFailed as problem:
        notes.append(problem.message)
    except TimeoutError:
        notes.append("The node took too long to answer.")
    if len(held) > MAX_TOKENS:
        notes.append(
            f"The wallet holds {len(held)} tokens; these are the first {MAX_TOKENS}. Name others with `tokens`."
        )
    return _Found(agent, chain, address, native, held[:MAX_TOKENS], " ".join(notes) or UNSET)


def _named(given: str | None, parse: Callable[[str], str]) -> list[str]:
    """The tokens that were named, each once."""
    texts = [text.strip() for text in given.split(",")] if given else []
    if len(texts) > MAX_TOKENS:
        raise TooManyTokens
    return list(dict.fromkeys(parse(text) for text in texts))


def _evm_token(text: str) -> str:
    try:
        return parse_address(text)
    except BadAddress as problem:
        raise BadToken(f"{text[:64]!r} is no address of a token on an EVM chain. {problem}") from None


def _mint(text: str) -> str:
    try:
        return str(Pubkey.from_string(text))
    except ValueError:
        raise BadToken(f"{text[:64]!r} is no address of a mint.") from None


def _token(held: Held) -> TokenFunds:
    decimals = UNSET if held.decimals is None else held.decimals
    return TokenFunds(held.address, held.symbol, *_amount(held), decimals=decimals, note=held.note or UNSET)


def _amount(held: Held) -> tuple[str | None, str | None]:
    if held.amount is None:
        return None, None
    # Nothing is nothing in any unit.
    unknown = held.decimals is None and held.amount != 0
    return str(held.amount), None if unknown else formatted(held.amount, held.decimals or 0)


def _portfolio(found: _Found, listed: prices.Prices) -> Portfolio:
    chain, native = found.chain, None
    worths: list[Decimal] = []
    if found.native.amount is not None:
        usd = _worth(listed, f"{chain.family}:native", chain.symbol, found.native, worths)
        native = NativeWorth(chain.symbol, formatted(found.native.amount, chain.decimals), usd)
    prefix = f"evm:{chain.id}:" if chain.family == "evm" else "solana:"
    shown = [
        TokenWorth(
            one.address, one.symbol, *_amount(one), _worth(listed, prefix + one.address, one.symbol, one, worths),
            one.note or UNSET,
        )
        for one in found.tokens
    ]  # fmt: skip
    return Portfolio(
        chain_id=chain.id, native=native, tokens=shown, note=found.note,
        total_usd_text=prices.text(prices.total(worths)) if worths else UNSET,
    )  # fmt: skip


def _worth(listed: prices.Prices, asset: str, symbol: str | None, held: Held, worths: list[Decimal]) -> str | UnsetType:
    usd = prices.worth(listed.find(asset, symbol), held.amount, held.decimals)
    if usd is None:
        return UNSET
    worths.append(usd)
    return prices.text(usd)
