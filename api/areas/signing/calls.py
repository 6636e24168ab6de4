"""From an agent's batch of calls to an answer: judged now, and kept as an intent for a person."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.chains.evm.action_orders import CallsOrder
from custody.intents import store as intents
from custody.kit import ids, stages
from custody.kit.answer_kinds import Declined, Deferred, Throttled
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller
from custody.kit.described import Id, described
from custody.kit.refs import AgentRef
from custody.policies.types import Result
from custody.ports import Ports
from custody.protocol.signer.intents import SendCalls
from custody.protocol.signer.outcomes import Proposed
from custody.transactions.types import Status

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
    """A rule refuses the batch, or its intent ended unexecuted; it keeps its reference: send another with a new one."""

    action_id: Annotated[Id, described("The action's id: that of its intent, or of the rejected transaction.")]
    tx_id: Annotated[Id | None, described("The transaction, kept as rejected; null where an intent is over.")]
    results: Annotated[list[Result], described("Result of each rule for the batch, when it was sent first.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[
        Literal["rejected", "failed", "canceled", "expired"], described("`rejected`, or the end of the intent.")
    ] = "rejected"
    code: Annotated[Literal["policy_refused", "approval_denied"], Meta(description=_CODE)] = "policy_refused"


class ThrottledCalls(msgspec.Struct, frozen=True, rename="camel"):
    """A rate-limit rule has no room for so many; send the same request after `Retry-After` seconds."""

    action_id: Annotated[Id, described("The action's id, which is that of the rejected transaction.")]
    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    results: Annotated[list[Result], described("Result of each rule for the batch.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[Literal["rejected"], described("Always `rejected`.")] = "rejected"
    code: Annotated[Literal["policy_rate_limited"], Meta(description=_CODE)] = "policy_rate_limited"


class TransactionOfCalls(msgspec.Struct, frozen=True, rename="camel"):
    """The transaction that one call became."""

    tx_id: Annotated[Id, described("The transaction.")]
    tx_hash: Annotated[str | None, described("The hash of the transaction.")]
    status: Annotated[Status, described("State of the transaction, as it is now.")]


class ExecutedCalls(msgspec.Struct, frozen=True, rename="camel"):
    """The batch was executed: one transaction for each call, in their order."""

    action_id: Annotated[Id, described("The action's id, which is that of its intent.")]
    intent_id: Annotated[Id, described("The intent that a person executed.")]
    transactions: Annotated[list[TransactionOfCalls], described("The transactions.")]
    type: Annotated[Literal["send_calls"], described("Kind of action.")] = "send_calls"
    status: Annotated[Literal["executed"], described("Always `executed`.")] = "executed"


type SentCalls = Deferred[ProposedCalls] | ExecutedCalls | Declined[RejectedCalls] | Throttled[ThrottledCalls]


async def send(ports: Ports, caller: AgentCaller, ref: AgentRef, body: CallsOrder) -> Answered[SentCalls]:
    """Judge a batch; once under its reference, however often it is sent. No node is asked: nothing is signed yet."""
    with stages.time_stage("signer"):
        answered = await ports.workers.ask(SendCalls(ref.agent, ids.new_uuid(), body), caller)
    outcome = answered.answer
    if isinstance(outcome, Proposed):
        over = await _find_end(ports, ref, outcome) if answered.replayed else None
        proposed = ProposedCalls(outcome.intent_id, outcome.intent_id, outcome.results)
        return Answered(over or Deferred(proposed, outcome.reason), answered.replayed)
    if (room := outcome.room) is not None:
        throttled = ThrottledCalls(outcome.tx_id, outcome.tx_id, outcome.results)
        late = Throttled(throttled, outcome.reason, retry_after=room.seconds, limit=room.limit)
        return Answered(late, answered.replayed)
    rejected = RejectedCalls(outcome.tx_id, outcome.tx_id, outcome.results)
    return Answered(Declined(rejected, outcome.reason), answered.replayed)


async def _find_end(ports: Ports, ref: AgentRef, outcome: Proposed) -> ExecutedCalls | Declined[RejectedCalls] | None:
    """The answer for a batch whose intent is over by now; None while a person may still execute it."""
    intent = await intents.get(ports.pool, ref.tenant, outcome.intent_id)
    match intent.status:
        case "pending" | "authorized" | "executing":
            return None
        case "executed":
            made = msgspec.convert((intent.execution_result or {})["transactions"], list[TransactionOfCalls])
            return ExecutedCalls(intent.id, intent.id, made)
        case status:
            said = f"The intent of this batch is {status}: nothing of it was signed."
            over = RejectedCalls(intent.id, None, outcome.results, status=status, code="approval_denied")
            return Declined(over, said)
