"""Payments that servers demand."""

from api.areas.signing import payments
from api.areas.signing.payments import PaymentBody, PaymentSigned
from api.areas.signing.types import Decided
from api.http.bodies import MAX_PAYMENT_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import NODE, PAYMENT
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.refs import AgentRef
from custody.payments.refusals import PaymentExpired
from custody.ports import Ports
from custody.protocol.signer.orders import SignOrder

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/x402",
    max_body=MAX_PAYMENT_BODY,
    who=asking(SignOrder),
    fails=(*NODE, *PAYMENT, PaymentExpired),
    private=True,
    queues=True,
)
async def pay_demand(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: PaymentBody
) -> Answered[Decided[PaymentSigned]]:
    """Pay what a server demands by x402, queue it for approval, or refuse it.

    The first offer that can be paid from here is judged by the agent's rules. An enabled list of approved addresses
    must name the recipient, or a person decides. The same Idempotency-Key gets the same payment while it can be used.
    """
    return await payments.pay(ports, caller, agent, body)
