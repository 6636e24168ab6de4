"""The context of an order: names, lists, limits, tokens, the past with its destination.

Rows are read for showing. That an address is an agent's own wallet counts only where the signer has its key.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from api.areas.agents import shown
from api.areas.agents import store as agents
from api.areas.dashboard import agent as dashboard
from api.areas.funds import read as funds
from api.areas.funds.types import FundsQuery
from api.areas.order_words import store
from api.areas.policies import store as policies
from custody.chains.evm.address import BadAddress, checksum, parse_address
from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.agents import Agent
from custody.transactions import store as transactions
from custody.transactions.types import TransactionQuery
from words import shapes
from words.orders.lists import address_key, names_on_lists, own_rules, self_listed
from words.orders.order import Known, Order
from words.orders.parties import token_of
from words.orders.past import BITCOIN_ORDERS, LOOKED_THROUGH, keep_related, place_of
from words.texts.amounts import quote
from words.texts.plain import harmless

# A node that is slow must not keep a person from what everybody else said.
TOKEN_SECONDS: Final = 4.0
_MOST_TOKENS: Final = 25


def read_as[T](value: Any, shape: type[T]) -> T:
    """An answer of the service as words read it, with every text in it made harmless."""
    return msgspec.convert(harmless(msgspec.to_builtins(value)), shape)


async def surroundings(ports: Ports, ref: AgentRef, order: Order) -> Known:
    """Look for all of it; what cannot be had is said."""
    agent = await shown.get(ports, ref)
    rules = await policies.all_of(ports.pool, ref)
    transaction = read_as(await transactions.get(ports.pool, ref, order.tx_id), shapes.Transaction)
    listed = read_as(rules, list[shapes.PolicyRule])
    past = await _past(ports, ref, order)
    names, complete = await _names(ports, ref.tenant, order)
    tokens, doubt = await _tokens(ports, ref, order)
    lists = names_on_lists(listed)
    return Known(
        names={address: "; ".join(filter(None, (names.get(address), lists.get(address)))) for address in names | lists},
        self_listed=self_listed(listed),
        own_rules=own_rules(listed),
        tokens=tokens,
        budgets=read_as(await dashboard.budgets(ports.pool, ref, rules), list[shapes.Budget]),
        past=past.transactions if past else None,
        past_complete=past is not None and past.total <= LOOKED_THROUGH,
        looked_through=min(past.total, LOOKED_THROUGH) if past else 0,
        searched=BITCOIN_ORDERS if order.kind == "bitcoin" else Known.searched,
        data=transaction.data,
        transaction=transaction,
        doubt=doubt,
        names_known=complete,
        frozen="This agent is frozen: it cannot sign." if agent.frozen_at else "",
    )


async def _past(ports: Ports, ref: AgentRef, order: Order) -> shapes.TransactionPage | None:
    place = place_of(order)
    if place is None:
        return None
    query = TransactionQuery(to_address=place.get("toAddress"), kind=place.get("kind"), limit=LOOKED_THROUGH)
    found = await transactions.search(ports.pool, ref, query)
    return keep_related(order, shapes.TransactionPage(read_as(found.rows, list[shapes.Transaction]), found.total.rows))


async def _names(ports: Ports, tenant: str, order: Order) -> tuple[dict[str, str], bool]:
    """The agents among the parties of an order, and whether all were looked for; the signer vouches for each wallet."""
    named = [order.to_address, *(one for effect in order.effects for one in (effect.to, effect.spender))]
    wanted = {spelling for address in named if address for spelling in _spellings(address)}
    found = await store.owners(ports.pool, tenant, wanted)
    owners = await agents.by_id(ports.pool, tenant, found.agents) if found.agents else {}
    await shown.vouch_for(ports, tenant, list(owners.values()))
    return dict(_wallets(owners.values())), found.complete


def _spellings(address: str) -> set[str]:
    try:
        return {address, checksum(parse_address(address))}
    except BadAddress:
        return {address}


def _wallets(found: Iterable[Agent]) -> Iterable[tuple[str, str]]:
    for agent in found:
        said = f"agent {quote(harmless(agent.name))} ({agent.id}) of this tenant"
        for _, address in agent.wallet_addresses.all:
            yield address_key(address), said


async def _tokens(ports: Ports, ref: AgentRef, order: Order) -> tuple[dict[str, shapes.TokenFunds], str]:
    """The tokens of an order in their own words, and what was in doubt: a node may not answer, and may lie."""
    named = {effect.asset: token_of(effect.asset) for effect in order.effects if effect.asset}
    wanted = {asset: token for asset, token in named.items() if token and _is_on(asset, order.chain_id)}
    if not wanted or order.chain_id is None:
        return {}, ""
    listed = ",".join(list(dict.fromkeys(wanted.values()))[:_MOST_TOKENS])
    try:
        async with asyncio.timeout(TOKEN_SECONDS):
            answer = await funds.tokens(ports, ref, FundsQuery(chain_id=order.chain_id, tokens=listed))
    except (CustodyError, TimeoutError):
        return {}, "Unavailable right now: tokens."
    told = {address_key(one.address): one for one in read_as(answer, shapes.AgentTokens).tokens}
    found = {asset: told[address_key(token)] for asset, token in wanted.items() if address_key(token) in told}
    return found, ""


def _is_on(asset: str, chain_id: int | None) -> bool:
    return asset.startswith("solana:") or asset.split(":")[1] == str(chain_id)
