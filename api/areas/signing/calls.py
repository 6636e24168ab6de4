"""From an agent's batch of calls to an answer: judged now, and kept as an intent for a person."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.chains.orders import CallsOrder
from custody.kit import ids, stages
from custody.kit.answers import Answered, Declined, Deferred, Throttled
from custody.kit.callers import AgentCaller
from custody.kit.described import Id, described
from custody.kit.refs import AgentRef
from custody.policies.types import Result
from custody.ports import Ports
from custody.protocol.signer.intents import SendCalls
from custody.protocol.signer.orders import Proposed

_CODE = "The word for programs; it never changes."


class ProposedCalls(msgspec.Struct, frozen=True, rename="camel"):
    """The batch waits as an intent: a person authorises and executes it; see `/intents`."""

    action_id: Annotated[Id, described("The action's id, which is that of its intent.")]
    intent_id: Annotated[Id, described("The intent that a person authorises.")]
    results: Annotated[list[Result], described("Result of each rule for the batch.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[Literal["pending_approval"], described("Always `pending_approval`.")] = "pending_approval"
    code: Annotated[Literal["approval_required"], Meta(description=_CODE)] = "approval_required"


class RejectedCalls(msgspec.Struct, frozen=True, rename="camel"):
    """A rule refuses the batch; it keeps its reference, so send another with a new one."""

    action_id: Annotated[Id, described("The action's id, which is that of the rejected transaction.")]
    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    results: Annotated[list[Result], described("Result of each rule for the batch.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[Literal["rejected"], described("Always `rejected`.")] = "rejected"
    code: Annotated[Literal["policy_refused"], Meta(description=_CODE)] = "policy_refused"


class ThrottledCalls(msgspec.Struct, frozen=True, rename="camel"):
    """A rate-limit rule has no room for so many; send the same request after `Retry-After` seconds."""

    action_id: Annotated[Id, described("The action's id, which is that of the rejected transaction.")]
    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    results: Annotated[list[Result], described("Result of each rule for the batch.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[Literal["rejected"], described("Always `rejected`.")] = "rejected"
    code: Annotated[Literal["policy_rate_limited"], Meta(description=_CODE)] = "policy_rate_limited"


type SentCalls = Deferred[ProposedCalls] | Declined[RejectedCalls] | Throttled[ThrottledCalls]


async def send(ports: Ports, caller: AgentCaller, ref: AgentRef, body: CallsOrder) -> Answered[SentCalls]:
    """Judge a batch; once under its reference, however often it is sent. No node is asked: nothing is signed yet."""
    with stages.timed("signer"):
        answered = await ports.workers.ask(SendCalls(ref.agent, ids.new_uuid(), body), caller)
    outcome = answered.answer
    if isinstance(outcome, Proposed):
        proposed = ProposedCalls(outcome.intent_id, outcome.intent_id, outcome.results)
        return Answered(Deferred(proposed, outcome.reason), answered.replayed)
    if (room := outcome.room) is not None:
        throttled = ThrottledCalls(outcome.tx_id, outcome.tx_id, outcome.results)
        late = Throttled(throttled, outcome.reason, retry_after=room.seconds, limit=room.limit)
        return Answered(late, answered.replayed)
    rejected = RejectedCalls(outcome.tx_id, outcome.tx_id, outcome.results)
    return Answered(Declined(rejected, outcome.reason), answered.replayed)
