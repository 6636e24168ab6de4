"""An order as an agent asks for it, or an owner or admin in its place."""

from custody.kit.answers import Answered
from custody.kit.errors import Forbidden
from custody.kit.refs import AgentRef
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import BatchSigned, Decided, Proposed
from custody.protocol.signer.refusals import SignerRequired, WalletOfPerson
from custody.protocol.signer.user_wallets import is_anothers
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenSession
from signer import route_limits, signed_request
from signer.authorized import way_of
from signer.context import Signer
from signer.orders.kind import Inputs
from signer.signing_attempt import Outcome, SigningAttempt
from signer.together import settle


async def sign_order(
    signer: Signer, message: SignOrder, call: Call[ProvenAgent] | Call[ProvenSession]
) -> Answered[Decided]:
    """Judge an order by the agent's sealed policies, then sign, queue or refuse it.

    An owner or admin may ask in an agent's place; the agent's policies judge it all the same.
    """
    ref = acting_for(call, message.agent)
    problem = await route_limits.find_problem(signer, ref, message.question.request)

    def attempt() -> SigningAttempt:
        order = message.question.request
        kind = signer.kinds.of(order)
        if kind.needs_signer and call.authorization is None and isinstance(call.caller, ProvenAgent):
            raise SignerRequired
        unique = signer.unique_of(ref.tenant, message.tx_id)
        draft = kind.check(order, Inputs(signer.chains, message.prepared, unique=unique))
        way = way_of(signer, signed_request.read(call, ref, message))
        return SigningAttempt(
            ref=ref,
            tx_id=message.tx_id,
            kind=kind,
            draft=draft,
            call=call,
            way=way,
            answers=message.answers,
            problem=problem,
        )

    return decision_of(await settle(signer, ref, attempt, may_be_taken_along=_is_light(signer, call, message)))


def _is_light(signer: Signer, call: Call[ProvenAgent] | Call[ProvenSession], message: SignOrder) -> bool:
    """Say whether it may be read for an order that has the turn before."""
    plain = isinstance(call.caller, ProvenAgent) and call.authorization is None
    return plain and signer.kinds.of(message.question.request).second_reader is None


def decision_of(answered: Answered[Outcome]) -> Answered[Decided]:
    """The outcome of one order."""
    if isinstance(answered.answer, BatchSigned | Proposed):
        raise TypeError(f"one order was answered with {type(answered.answer).__name__}")
    return Answered(answered.answer, answered.replayed)


def acting_for(call: Call[ProvenAgent] | Call[ProvenSession], agent: str) -> AgentRef:
    """The agent whose wallet is asked for; an agent has only its own."""
    if isinstance(call.caller, ProvenAgent) and call.caller.agent != agent:
        raise Forbidden("An agent may sign only with its own wallet.", code="other_agent")
    user = call.caller.user if isinstance(call.caller, ProvenSession) else None
    if is_anothers(agent, call.caller.tenant, user):
        raise WalletOfPerson
    return AgentRef(call.caller.tenant, agent)
