"""Earlier orders of an agent that are context of another one. Pure."""

from typing import Final

from words.orders.order import Order
from words.orders.parties import meets
from words.shapes import Transaction, TransactionPage

# How many earlier orders to the same address are looked through.
LOOKED_THROUGH: Final = 100
BITCOIN_ORDERS: Final = "Bitcoin orders"


def place_of(order: Order) -> dict[str, str] | None:
    """The filter that finds earlier orders to the same place; None where an order names none."""
    if order.to_address:
        return {"toAddress": order.to_address}
    # It may pay several, and none of them is the place that it goes to.
    return {"kind": order.kind} if order.kind == "bitcoin" else None


def keep_related(order: Order, page: TransactionPage) -> TransactionPage:
    """Keep those with one of the same parties; where an order names no party, all that there are."""
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
