"""A batch of calls that an agent asks for: judged now, to say no at once, and kept as an intent for a person."""

from custody.kit import ids
from custody.kit.answers import Answered
from custody.protocol.signer.intents import SendCalls
from custody.protocol.signer.outcomes import Proposed, Refused
from custody.protocol.signer.refusals import SignerRequired
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from signer import signed_request
from signer.context import Signer
from signer.intents.batches import Proposal
from signer.orders.kind import Inputs
from signer.sign_order import acting_for
from signer.signing_attempt import SigningAttempt
from signer.together import settle


async def send_calls(signer: Signer, message: SendCalls, call: Call[ProvenAgent]) -> Answered[Proposed | Refused]:
    """Judge a batch now, to say no at once where a rule does; it is judged again when a person executes it."""
    ref = acting_for(call, message.agent)

    def attempt() -> SigningAttempt:
        kind = signer.kinds.of(message.order)
        if call.authorization is None:
            raise SignerRequired
        draft = kind.check(message.order, Inputs(signer.chains, unsafe_calls=signer.allow_unsafe_calls))
        evidence = signed_request.read(call, ref, message)
        assert evidence is not None  # noqa: S101 - there is an authorization
        way = Proposal(signer, evidence, tuple(ids.new_uuid() for _ in message.order.calls))
        return SigningAttempt(ref=ref, tx_id=message.id, kind=kind, draft=draft, call=call, way=way)

    answered = await settle(signer, ref, attempt)
    if not isinstance(answered.answer, Proposed | Refused):
        raise TypeError(f"a batch was answered with {type(answered.answer).__name__}")
    return Answered(answered.answer, answered.replayed)
