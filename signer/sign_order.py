"""An order as an agent asks for it, or an owner or admin in its place."""

from collections.abc import Callable

from custody.kit.answers import Answered
from custody.kit.errors import Forbidden
from custody.kit.refs import AgentRef
from custody.protocol.signer.orders import BatchSigned, Decided, Proposed, SignOrder
from custody.protocol.signer.refusals import SignerRequired
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenSession
from signer import signed_request
from signer.authorized import way_of
from signer.context import Signer
from signer.decide import settle
from signer.orders.kind import Inputs
from signer.signing_attempt import Outcome, SigningAttempt
from signer.waiting import Waiter


async def sign_order(
    signer: Signer, message: SignOrder, call: Call[ProvenAgent] | Call[ProvenSession]
) -> Answered[Decided]:
    """Judge an order by the agent's sealed policies, then sign, queue or refuse it.

    An owner or admin may ask in an agent's place; the agent's policies judge it all the same.
    """
    ref = acting_for(call, message.agent)

    def attempt() -> SigningAttempt:
        order = message.question.request
        kind = signer.kinds.of(order)
        if kind.needs_signer and call.authorization is None and isinstance(call.caller, ProvenAgent):
            raise SignerRequired
        draft = kind.check(order, Inputs(signer.chains, message.prepared))
        way = way_of(signer, signed_request.read(call, ref, message))
        return SigningAttempt(ref=ref, tx_id=message.tx_id, kind=kind, draft=draft, call=call, way=way)

    return decided(await settle(signer, ref, attempt, _waiter(signer, call, message, attempt)))


def _waiter(
    signer: Signer,
    call: Call[ProvenAgent] | Call[ProvenSession],
    message: SignOrder,
    attempt: Callable[[], SigningAttempt],
) -> Waiter | None:
    """Offer what may be taken along by an order that has the turn before; the rest is not even read for it."""
    plain = isinstance(call.caller, ProvenAgent) and call.authorization is None
    return Waiter(attempt) if plain and signer.kinds.of(message.question.request).second_reader is None else None


def decided(answered: Answered[Outcome]) -> Answered[Decided]:
    """The outcome of one order."""
    if isinstance(answered.answer, BatchSigned | Proposed):
        raise TypeError(f"one order was answered with {type(answered.answer).__name__}")
    return Answered(answered.answer, answered.replayed)


def acting_for(call: Call[ProvenAgent] | Call[ProvenSession], agent: str) -> AgentRef:
    """The agent whose wallet is asked for; an agent has only its own."""
    if isinstance(call.caller, ProvenAgent) and call.caller.agent != agent:
        raise Forbidden("An agent may sign only with its own wallet.", code="other_agent")
    return AgentRef(call.caller.tenant, agent)
