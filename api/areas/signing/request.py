"""From a caller's order to an answer; the path is told in docs/follow-a-request.md.

Once the signer was asked, the caller hanging up changes nothing: the use case runs to its end.
"""

from api.areas.agents import shown
from api.areas.signing.external_checks import Asking, ask_signer_and_services
from api.areas.signing.prepare import Preparation, prepare
from api.areas.signing.types import Decided, Undecided, pending, refusal, refusal_of_ended, signed_answer
from custody.chains.orders import Asked, Question
from custody.kit import ids, stages
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import NeedsPreparation, Queued, Refused, Signed
from custody.signing import broadcast
from custody.transactions import store as transactions

# An owner or admin may ask in an agent's place.
Asker = AgentCaller | SessionCaller


async def sign[T](
    ports: Ports, caller: Asker, ref: AgentRef, question: Question, shape: type[T]
) -> Answered[Decided[T]]:
    """Sign an order, and broadcast it if asked; what was signed is answered in the shape of its kind."""
    preparation = await prepare_order(ports, ref, question.request)
    message = SignOrder(ref.agent, ids.new_uuid(), question, preparation.prepared)
    return shape_decision(await run_to_completion(ask_signer(ports, caller, ref, message, preparation), "sign"), shape)


async def prepare_order(ports: Ports, ref: AgentRef, order: Asked) -> Preparation:
    """Ask a node about an order of this agent."""

    async def sender(family: str) -> str:
        try:
            # Its address may be shown as the one to fund.
            return (await shown.get(ports, ref)).wallet_addresses.of(family)
        except AgentAbsent:
            # Deleted a moment ago: what that makes of its token is the signer's word.
            return ""

    return await prepare(ports, ref.tenant, order, sender)


async def ask_signer(
    ports: Ports, caller: Asker, ref: AgentRef, message: Asking, preparation: Preparation
) -> Answered[Signed | Undecided]:
    """Have an order judged and signed, and broadcast what was."""
    answered = await ask_signer_and_services(ports, caller, ref, message)
    match answered.answer:
        case Signed() as signed:
            await send_if_asked(ports, ref, signed, replayed=answered.replayed)
            return Answered(signed, answered.replayed)
        case Queued() as outcome:
            return Answered(await _waiting(ports, ref, outcome, replayed=answered.replayed), answered.replayed)
        case Refused() as outcome:
            return Answered(refusal(outcome), answered.replayed)
        case NeedsPreparation():
            raise preparation.problem or UpstreamFailed
        case other:
            raise TypeError(f"the signer answered an order with {type(other).__name__}")


async def _waiting(ports: Ports, ref: AgentRef, outcome: Queued, *, replayed: bool) -> Undecided:
    """The answer for an order that was queued; an earlier one may have ended since. (One that is signed says so.)"""
    if replayed:
        found = await transactions.get(ports.pool, ref, outcome.tx_id)
        if found.status == "rejected":
            return refusal_of_ended(outcome, found.status_detail)
    return pending(outcome)


def shape_decision[T](answered: Answered[Signed | Undecided], shape: type[T]) -> Answered[Decided[T]]:
    """The same with what was signed in the shape of its kind."""
    outcome = answered.answer
    return Answered(signed_answer(outcome, shape) if isinstance(outcome, Signed) else outcome, answered.replayed)


async def send_if_asked(ports: Ports, ref: AgentRef, signed: Signed, *, replayed: bool) -> None:
    """Broadcast what was just signed; for an earlier answer only if it is still not sent."""
    if not signed.broadcast:
        return
    if replayed and (await transactions.get(ports.pool, ref, signed.tx_id)).status != "signed":
        return
    with stages.time_stage("broadcast"):
        await broadcast.send(ports, ref.tenant, ports.chains.find(signed.chain_id or 0), signed, again=replayed)
