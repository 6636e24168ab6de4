"""From a server's demand to the payment for it: the sign path, told in terms of x402."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from api.areas.signing.request import Asker, ask_signer, prepare_order
from api.areas.signing.types import Decided
from custody.chains.orders import EvmPaymentQuestion, SolanaPaymentQuestion
from custody.chains.payment_orders import EvmPaymentOrder, SolanaPaymentOrder
from custody.kit import clock, ids
from custody.kit.answers import Answered
from custody.kit.described import Id, Instant, described
from custody.kit.refs import AgentRef
from custody.kit.shapes import ReferenceId
from custody.kit.tasks import run_to_completion
from custody.payments.choice import Allowed, choose
from custody.payments.demand import MAX_HEADER, MAX_TEXT, Demand, read_header, read_object
from custody.payments.orders import order_of
from custody.payments.places import place_in
from custody.payments.refusals import OfferUnpayable, PaymentExpired
from custody.ports import Ports
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import Signed

_ANY = Allowed(schemes=frozenset({"exact", "upto"}))


class PaymentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A demand to pay by x402, as an HTTP server, an MCP tool or an A2A agent makes it."""

    demand: Annotated[
        dict[str, Any] | Annotated[str, Meta(min_length=4, max_length=MAX_HEADER)],
        described("The demand: the object `PaymentRequired`, or the header `PAYMENT-REQUIRED` in base64."),
    ]
    resource: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, pattern=r"^[\x21-\x7e]+\Z")] | None,
        described("The address that you asked for: who decides sees it, and its payment route limits the payment."),
    ] = None
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class PaymentSigned(msgspec.Struct, frozen=True, rename="camel"):
    """A payment: send the request again with this header, or its value where the demand came in JSON."""

    tx_id: Annotated[Id, described("The transaction.")]
    header: Annotated[str, described("The name of the header: `PAYMENT-SIGNATURE`, or `X-PAYMENT` in version 1.")]
    value: Annotated[str, described("The payment in base64. It is JSON, for sellers that take it so.")]
    asset: Annotated[str, described("The asset that is paid, by its whole name.")]
    amount: Annotated[str, described("The most that is paid, in the asset's smallest unit.")]
    expires_at: Annotated[Instant, described("The payment can be used until then, once.")]

    def __repr__(self) -> str:
        return f"PaymentSigned({self.tx_id})"


async def pay(ports: Ports, caller: Asker, ref: AgentRef, body: PaymentBody) -> Answered[Decided[PaymentSigned]]:
    """Have the first offer that can be paid from here judged and signed; whom it pays settles it."""
    demand = _read(body)
    terms = None if demand is None else choose(demand, ports.chains, _ANY)
    if demand is None or terms is None:
        raise OfferUnpayable
    host, path = place_in(body.resource or demand.resource) or (None, None)
    order = order_of(demand, terms, host=host, path=path, reference_id=body.reference_id)
    preparation = await prepare_order(ports, ref, order)
    message = SignOrder(ref.agent, ids.new_uuid(), _question(order), preparation.prepared)
    answered = await run_to_completion(ask_signer(ports, caller, ref, message, preparation), "sign")
    outcome = answered.answer
    made = _release(outcome, replayed=answered.replayed) if isinstance(outcome, Signed) else outcome
    return Answered(made, answered.replayed)


def _read(body: PaymentBody) -> Demand | None:
    if isinstance(body.demand, str):
        return read_header(body.demand)
    return read_object(msgspec.json.encode(body.demand))


def _question(order: EvmPaymentOrder | SolanaPaymentOrder) -> EvmPaymentQuestion | SolanaPaymentQuestion:
    return EvmPaymentQuestion(order) if isinstance(order, EvmPaymentOrder) else SolanaPaymentQuestion(order)


def _release(signed: Signed, *, replayed: bool) -> PaymentSigned:
    made = signed.payment
    if made is None:
        raise TypeError("the signer answered a payment without one")
    until = datetime.fromtimestamp(made.until, UTC)
    if replayed and until <= clock.now():
        raise PaymentExpired
    return PaymentSigned(signed.tx_id, made.header, made.value, made.asset, made.amount, clock.iso(until))
