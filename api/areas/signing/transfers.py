"""From a transfer to an answer: the sign path, told in terms of the transfer.

What is answered is the action as it is once the path has ended. So the same transfer, sent again under its reference,
is answered with what has become of it since.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from api.areas.signing.external_checks import ask_signer_and_services
from api.areas.signing.prepare import Preparation
from api.areas.signing.request import prepare_order, send_if_asked
from api.areas.signing.types import code_of, why_ended
from api.areas.transactions import action_store
from api.areas.transactions.actions import Found, TransferAction
from custody.chains.evm.action_orders import TransferOrder
from custody.chains.orders import TransferQuestion
from custody.kit import ids
from custody.kit.answer_kinds import Declined, Deferred, Metered, Throttled
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.described import Id, Instant, described
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.policies.types import Result
from custody.ports import Ports
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.outcomes import NeedsPreparation, Queued, Refused, Signed, Voted

_CODE = "The word for programs; it never changes."


class PendingTransfer(TransferAction, frozen=True, rename="camel", kw_only=True):
    """Queued: a person must approve the transfer before it is signed; nothing needs to be sent again."""

    approval_id: Annotated[Id, described("Id of the approval; see `/approvals`.")]
    results: Annotated[list[Result], described("The same as `policyResults`, as on the other signing routes.")]
    code: Annotated[Literal["approval_required"], Meta(description=_CODE)] = "approval_required"
    release_at: Annotated[
        Instant | None,
        described("Time at which it is signed by itself unless somebody decides before; null if a person must."),
    ] = None


class RejectedTransfer(TransferAction, frozen=True, rename="camel", kw_only=True):
    """A rule refuses the transfer, a person denied it, or the agent withdrew it; send another with a new reference."""

    results: Annotated[list[Result], described("The same as `policyResults`, as on the other signing routes.")]
    code: Annotated[Literal["policy_refused", "approval_denied", "withdrawn"], Meta(description=_CODE)] = (
        "policy_refused"
    )


class ThrottledTransfer(TransferAction, frozen=True, rename="camel", kw_only=True):
    """A rate-limit rule has no room for another transfer; send the same request after `Retry-After` seconds."""

    results: Annotated[list[Result], described("The same as `policyResults`, as on the other signing routes.")]
    code: Annotated[Literal["policy_rate_limited"], Meta(description=_CODE)] = "policy_rate_limited"


type Transferred = (
    Metered[TransferAction] | Deferred[PendingTransfer] | Declined[RejectedTransfer] | Throttled[ThrottledTransfer]
)
type _Outcome = Signed | Queued | Refused


async def transfer(
    ports: Ports, caller: AgentCaller | SessionCaller, ref: AgentRef, body: TransferOrder
) -> Answered[Transferred]:
    """Judge and sign a transfer, and broadcast it if asked; once under its reference, however often it is sent."""
    preparation = await prepare_order(ports, ref, body)
    message = SignOrder(ref.agent, ids.new_uuid(), TransferQuestion(body), preparation.prepared)
    return await run_to_completion(_ask(ports, caller, ref, message, preparation), "transfer")


async def _ask(
    ports: Ports, caller: AgentCaller | SessionCaller, ref: AgentRef, message: SignOrder, preparation: Preparation
) -> Answered[Transferred]:
    answered = await ask_signer_and_services(ports, caller, ref, message)
    outcome = answered.answer
    if isinstance(outcome, NeedsPreparation):
        raise preparation.problem or UpstreamFailed
    if isinstance(outcome, Voted):
        raise TypeError("the signer answered a transfer with a vote")
    if isinstance(outcome, Signed):
        try:
            await send_if_asked(ports, ref, outcome, replayed=answered.replayed)
        except UpstreamFailed as problem:
            # Signed and kept: the caller must be able to find it.
            problem.context["actionId"] = outcome.tx_id
            raise
    found = await action_store.find(ports.pool, ref, outcome.tx_id)
    return Answered(_as_it_is(outcome, found, replayed=answered.replayed), answered.replayed)


def _as_it_is(outcome: _Outcome, found: Found, *, replayed: bool) -> Transferred:
    """The answer for an action in the state that it is in now, whatever was first said of it."""
    action = found.action
    if action.status == "pending_approval" and isinstance(outcome, Queued):
        waits = {"approval_id": outcome.approval_id, "release_at": outcome.release_at}
        return Deferred(_as(PendingTransfer, action, **waits), outcome.reason)
    if action.status != "rejected":
        left = outcome.left if isinstance(outcome, Signed) and not replayed else None
        return Metered(action, *(left.limit, left.remaining, left.seconds) if left else ())
    if not isinstance(outcome, Refused):
        why = why_ended(found.detail, "transfer")
        return Declined(_as(RejectedTransfer, action, code=code_of(found.detail)), why)
    if (room := outcome.room) is not None:
        data = _as(ThrottledTransfer, action)
        return Throttled(data, outcome.reason, retry_after=room.seconds, limit=room.limit)
    return Declined(_as(RejectedTransfer, action), outcome.reason)


def _as[T: TransferAction](shape: type[T], action: TransferAction, **more: str | None) -> T:
    fields: dict[str, Any] = {**msgspec.structs.asdict(action), "results": action.policy_results, **more}
    return shape(**fields)
