"""The holdings of an account's wallets: every wallet on every chain at once, so none waits for another one's node."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from api.areas.accounts import accounts
from api.areas.accounts.types import (
    AccountBalance,
    AccountWallet,
    BalanceAlready,
    BalanceQuery,
    BalancesBusy,
    NativeRollup,
    Rollups,
    TokenBalance,
    TokenRollup,
    WalletBalance,
)
from api.areas.agents.balance import in_whole_units
from api.areas.funds import erc20, read
from api.areas.funds.read import Holdings
from api.areas.funds.types import Held
from custody.chains.family import Chain
from custody.kit.tenant_semaphore import NoneFree, TooManyOfTenant
from custody.ports import Ports
from custody.protocol.signer.order_refusals import UnknownChain

# Wallets on chains that one question asks for at the same time: as many as one person's tenants may have under way, for
# a wait beyond that would count as the node's. With tokens each of them asks eight times itself.
AT_ONCE: Final = 8
WITH_TOKENS: Final = 1


class _Found(msgspec.Struct, frozen=True):
    """One wallet on one chain."""

    wallet: AccountWallet
    chain: Chain
    holds: Holdings


async def balance(ports: Ports, tenant: str, account_id: str, query: BalanceQuery) -> AccountBalance:
    """Ask nodes; what one does not tell is null with a note, and the rest is answered all the same."""
    chain = None if query.chain_id is None else ports.chains.find(query.chain_id)
    if query.chain_id is not None and chain is None:
        raise UnknownChain(f"Chain {query.chain_id} is not configured here.")
    tokens = read.token_names(query.tokens, erc20.token_address)
    account = await accounts.get(ports, tenant, account_id)
    asked = [
        (wallet, one)
        for wallet in account.wallets
        for one in ([chain] if chain is not None else _chains(ports, wallet.chain_family))
        if one.family == wallet.chain_family
    ]
    gate = asyncio.Semaphore(WITH_TOKENS if tokens else AT_ONCE)
    try:
        async with ports.balance_share.turn(ports.pool, tenant):
            found = await asyncio.gather(*(_ask(ports, tenant, gate, wallet, one, tokens) for wallet, one in asked))
    except TooManyOfTenant:
        raise BalanceAlready from None
    except NoneFree:
        raise BalancesBusy from None
    token_balances = [row for one in found for row in _tokens(one, every=chain is not None)]
    return AccountBalance(
        id=account.id,
        account_id=account.id,
        account_id_=account.id,
        wallets=account.wallets,
        capabilities=account.capabilities,
        capability_metadata=account.capability_metadata,
        balances=[_native(one) for one in found],
        token_balances=token_balances,
        rollups=Rollups(_native_rollups(found), _token_rollups(token_balances)),
    )


def _chains(ports: Ports, family: str) -> list[Chain]:
    """Chains of a family that have a node; where none has, the active one, whose note says so."""
    chains = [chain for chain in ports.chains.all_of(family) if chain.rpc_urls]
    return chains or [chain for chain in [ports.chains.active] if chain.family == family]


async def _ask(
    ports: Ports, tenant: str, gate: asyncio.Semaphore, wallet: AccountWallet, chain: Chain, tokens: Sequence[str]
) -> _Found:
    if wallet.address is None:
        return _Found(wallet, chain, Holdings(Held(""), [], "The wallet's agent was deleted."))
    named = tokens if chain.family == "evm" else ()
    async with gate:
        return _Found(wallet, chain, await read.holdings(ports, tenant, chain, wallet.address, named))


def _native(found: _Found) -> WalletBalance:
    chain, amount = found.chain, found.holds.native.amount
    return WalletBalance(
        wallet_id=found.wallet.wallet_id,
        chain_family=found.wallet.chain_family,
        chain_id=chain.id,
        symbol=chain.symbol,
        native=None if amount is None else str(amount),
        native_formatted=None if amount is None else in_whole_units(amount, chain.decimals),
        wallet_address=found.wallet.address,
        note=found.holds.note,
    )


def _tokens(found: _Found, *, every: bool) -> list[TokenBalance]:
    """A token's lines. Asked on all chains, one that is not on this chain has none."""
    return [
        TokenBalance(
            wallet_id=found.wallet.wallet_id,
            chain_id=found.chain.id,
            token=one.address,
            symbol=one.symbol,
            balance=amount,
            formatted=whole,
            decimals=one.decimals,
            note=one.note or UNSET,
        )
        for one in found.holds.tokens
        for amount, whole in [read.amounts(one)]
        if every or amount is not None
    ]


def _native_rollups(found: Sequence[_Found]) -> list[NativeRollup]:
    sums: dict[tuple[int, str], int] = {}
    for one in found:
        if (amount := one.holds.native.amount) is not None:
            key = (one.chain.id, one.chain.symbol)
            sums[key] = sums.get(key, 0) + amount
    return [NativeRollup(chain_id, symbol, str(total)) for (chain_id, symbol), total in sums.items()]


def _token_rollups(rows: Sequence[TokenBalance]) -> list[TokenRollup]:
    sums: dict[tuple[int, str], TokenRollup] = {}
    for row in rows:
        if row.balance is not None:
            before = sums.get((row.chain_id, row.token))
            total = int(row.balance) + (0 if before is None else int(before.balance))
            sums[row.chain_id, row.token] = TokenRollup(row.chain_id, row.token, row.symbol, str(total), row.decimals)
    return list(sums.values())
