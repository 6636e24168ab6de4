"""The order that a demand becomes, and the terms of an order that was made of one."""

from custody.chains.payment_orders import EvmPaymentOrder, PaymentOrder, SolanaPaymentOrder
from custody.chains.table import ChainTable
from custody.payments.demand import MAX_BYTES, Demand, read_offer, words
from custody.payments.offers import Terms, terms_of
from custody.payments.refusals import OfferUnpayable


def order_of(
    demand: Demand,
    terms: Terms,
    *,
    method: str | None = None,
    host: str | None = None,
    path: str | None = None,
    reference_id: str | None = None,
) -> EvmPaymentOrder | SolanaPaymentOrder:
    """Make the order that pays one of the offers; `host` and `path` say where it was demanded."""
    shape = EvmPaymentOrder if terms.chain.family == "evm" else SolanaPaymentOrder
    return shape(
        version=demand.version,
        offer=terms.offer.text,
        chain_id=terms.chain.id,
        resource=demand.resource_text,
        extensions=demand.extensions,
        method=method,
        host=host,
        path=path if path is None else path[:2048],
        words=words(demand.description) or None,
        reference_id=reference_id,
    )


def terms_in(order: PaymentOrder, chains: ChainTable) -> Terms:
    """Read the offer of an order strictly, and once more; OfferUnpayable where it comes to nothing here."""
    size = sum(len(part) for part in (order.offer, order.resource, order.extensions) if part is not None)
    offer = read_offer(order.version, order.offer) if size <= MAX_BYTES else None
    terms = None if offer is None else terms_of(offer, chains)
    if terms is None or terms.chain.id != order.chain_id:
        raise OfferUnpayable
    return terms
