"""Finds out what is known around an order: names, tokens, limits, the past with its destination.

At most four requests for an order, side by side, and one now and then for the address book: anyone who runs through the
queue with a finger on the key must not flood the service. Each may fail by itself; what it was for is then said.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from console.orders.address_book import book_of, names_on_lists, self_listed
from console.orders.order import Known, Order
from console.orders.parties import meets, token_of
from console.wire.api_client import ApiClient
from console.wire.failures import Away, Failure, SignedOut
from console.wire.shapes import AgentTokens, Dashboard, TokenFunds, Transaction, TransactionPage

# A service that is slow with one of these must not keep the others from being seen.
PATIENCE_SECONDS: Final = 8.0
# How many earlier orders to the same address are looked through.
LOOKED_THROUGH: Final = 100
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
        own_rules=frozenset(rule.id for rule in rules if rule.id and rule.source == "agent"),
        tokens=tokens if isinstance(tokens, dict) else {},
        budgets=dashboard.budgets if isinstance(dashboard, Dashboard) else [],
        past=past.transactions if isinstance(past, TransactionPage) else None,
        past_complete=isinstance(past, TransactionPage) and past.total <= LOOKED_THROUGH,
        looked_through=min(past.total, LOOKED_THROUGH) if isinstance(past, TransactionPage) else 0,
        searched="Bitcoin orders" if order.kind == "bitcoin" else Known.searched,
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
    if order.to_address:
        found = {"toAddress": order.to_address}
    elif order.kind == "bitcoin":
        # It may pay several, and none of them is the place that it goes to.
        found = {"kind": order.kind}
    else:
        return None
    path = f"/vault/{order.agent_id}/transactions"
    page = await client.get(path, TransactionPage, **found, limit=LOOKED_THROUGH)
    wanted = [effect.spender or effect.to for effect in order.effects if effect.kind != "fee"]
    parties = [party for party in wanted if party]
    return TransactionPage(
        [
            earlier
            for earlier in page.transactions
            if _is_earlier(earlier, order) and (not parties or any(meets(earlier, party) for party in parties))
        ],
        page.total,
    )


def _is_earlier(other: Transaction, order: Order) -> bool:
    """Tell whether another transaction is context of the decision: for a pending order, everything around it."""
    if other.id == order.tx_id:
        return False
    waits = order.status in ("", "pending", "pending_approval") or order.asked_at is None
    return waits or other.created_at <= (order.asked_at or "")
