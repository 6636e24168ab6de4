"""Finds out what is known around an order: names, tokens, limits, the past with its destination.

At most four requests for an order, side by side, and one now and then for the address book: anyone who runs through the
queue with a finger on the key must not flood the service. Each may fail by itself; what it was for is then said.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from console.orders.address_book import book_of
from console.wire.api_client import ApiClient
from console.wire.failures import Away, Failure, SignedOut
from words.orders.lists import names_on_lists, own_rules, self_listed
from words.orders.order import Known, Order
from words.orders.parties import token_of
from words.orders.past import BITCOIN_ORDERS, LOOKED_THROUGH, keep_related, place_of
from words.shapes import AgentTokens, Dashboard, TokenFunds, Transaction, TransactionPage

# A service that is slow with one of these must not keep the others from being seen.
PATIENCE_SECONDS: Final = 8.0
_MOST_TOKENS: Final = 25


async def fetch_context(client: ApiClient, order: Order) -> Known:
    """Ask for all of it at once; what cannot be had is left out and said in `trouble`. Raises SignedOut and Away."""
    book = book_of(client)
    answers = await asyncio.gather(
        _ask(book.read, client),
        _ask(client.get, f"/dashboard/{order.agent_id}", Dashboard),
        _ask(_transaction, client, order),
        _ask(_tokens, client, order),
        _ask(_past, client, order),
    )
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    for failure in failures:
        if isinstance(failure, SignedOut):
            raise failure
    away = bool(failures) and all(isinstance(failure, Away) for failure in failures)
    if away and not any(isinstance(answer, _TOLD) for answer in answers):
        # Nobody is there: what was known before is better than a Known full of holes.
        raise failures[0]
    names, dashboard, transaction, tokens, past = answers
    lacking = [what for what, answer in zip(_WHAT, answers, strict=True) if isinstance(answer, Failure)]
    rules = dashboard.policies if isinstance(dashboard, Dashboard) else []
    lists = names_on_lists(rules)
    own = {} if isinstance(names, Failure) else book.names()
    agent = book.agent(order.agent_id)
    known_names = not isinstance(names, Failure) and book.complete and isinstance(dashboard, Dashboard)
    return Known(
        names={address: "; ".join(filter(None, (own.get(address), lists.get(address)))) for address in own | lists},
        self_listed=self_listed(rules),
        own_rules=own_rules(rules),
        tokens=tokens if isinstance(tokens, dict) else {},
        budgets=dashboard.budgets if isinstance(dashboard, Dashboard) else [],
        past=past.transactions if isinstance(past, TransactionPage) else None,
        past_complete=isinstance(past, TransactionPage) and past.total <= LOOKED_THROUGH,
        looked_through=min(past.total, LOOKED_THROUGH) if isinstance(past, TransactionPage) else 0,
        searched=BITCOIN_ORDERS if order.kind == "bitcoin" else Known.searched,
        data=transaction.data if isinstance(transaction, Transaction) else None,
        transaction=transaction if isinstance(transaction, Transaction) else None,
        trouble=f"Unavailable right now: {', '.join(lacking)}. {failures[0].sentence}" if failures else "",
        doubt=f"Unavailable right now: {', '.join(lacking)}." if lacking else "",
        names_known=known_names,
        frozen="This agent is frozen: it cannot sign." if agent and agent.frozen_at else "",
    )


_TOLD: Final = (Dashboard, Transaction, TransactionPage)
_WHAT: Final = ("the names of addresses", "limits and lists", "the order's data", "tokens", "the past")


async def _ask(question: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """The answer, or the failure itself; the question is not even begun if nobody waits for it any more."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await question(*arguments)
    except Failure as failure:
        return failure
    except TimeoutError:
        return Away("The service responds slowly.")


async def _transaction(client: ApiClient, order: Order) -> Transaction | None:
    """Fetch the transaction to be signed; nothing is fetched for an order that is only tried out."""
    if not order.tx_id:
        return None
    return await client.get(f"/vault/{order.agent_id}/transactions/{order.tx_id}", Transaction)


async def _tokens(client: ApiClient, order: Order) -> dict[str, TokenFunds]:
    """Fetch the metadata of the tokens in the effects, by the effects' names of them."""
    named = {effect.asset: token_of(effect.asset) for effect in order.effects if effect.asset}
    wanted = {asset: token for asset, token in named.items() if token and _is_on(asset, order.chain_id)}
    if not wanted or order.chain_id is None:
        return {}
    tokens = list(dict.fromkeys(wanted.values()))[:_MOST_TOKENS]
    found = await client.get(
        f"/agents/{order.agent_id}/tokens", AgentTokens, chainId=order.chain_id, tokens=",".join(tokens)
    )
    told = {one.address.lower(): one for one in found.tokens}
    return {asset: told[token.lower()] for asset, token in wanted.items() if token.lower() in told}


def _is_on(asset: str, chain_id: int | None) -> bool:
    return asset.startswith("solana:") or asset.split(":")[1] == str(chain_id)


async def _past(client: ApiClient, order: Order) -> TransactionPage | None:
    """Earlier orders of the agent to the same place; where a token was sent, those with one of the same recipients."""
    found = place_of(order)
    if found is None:
        return None
    path = f"/vault/{order.agent_id}/transactions"
    return keep_related(order, await client.get(path, TransactionPage, **found, limit=LOOKED_THROUGH))
