"""Approve or deny a queued order for a person: prepare it again, then ask the signer."""

from typing import Literal

import msgspec

from api.areas.agents import store as agents
from api.areas.signing.prepare import Preparation, prepare
from api.areas.signing.request import send_if_asked
from api.areas.signing.types import PolicyRateLimited, refusal
from api.areas.transactions.redaction import sees_signatures
from custody.approvals import store
from custody.approvals.types import (
    ApprovalRefused,
    ApproveBody,
    Approved,
    ApprovedTransaction,
    Denied,
    DenyBody,
    RejectedTransaction,
    VotesTaken,
    VoteTaken,
)
from custody.chains.orders import load_order
from custody.kit.answer_kinds import Declined, Deferred, Throttled
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import UpstreamFailed
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.ports import Ports
from custody.protocol.signer.orders import Approve, Deny
from custody.protocol.signer.outcomes import NeedsPreparation, Refused, Signed, Voted
from custody.protocol.signer.refusals import ApprovalAbsent

type NotApproved = Deferred[VoteTaken] | Declined[ApprovalRefused] | Throttled[PolicyRateLimited]


async def approve(
    ports: Ports, caller: TenantCaller, approval_id: str, body: ApproveBody
) -> Answered[Approved | NotApproved]:
    """Approve by the item's id."""
    asked_for = await store.find_asked(ports.pool, caller.tenant, approval_id=approval_id)
    message = Approve(approval_id=approval_id, digest=body.digest, comment=body.comment, vote=body.vote)
    answered = await run_to_completion(_approve(ports, caller, asked_for, message), "approve")
    return answered.to(lambda outcome: _as_approval(outcome, caller) if isinstance(outcome, Signed) else outcome)


async def approve_transaction(
    ports: Ports, caller: TenantCaller, ref: AgentRef, tx_id: str, body: ApproveBody
) -> Answered[ApprovedTransaction | NotApproved]:
    """Approve by the agent's transaction."""
    asked_for = await store.find_asked(ports.pool, caller.tenant, tx_id=tx_id, agent=ref.agent)
    message = Approve(agent=ref.agent, tx_id=tx_id, digest=body.digest, comment=body.comment, vote=body.vote)
    answered = await run_to_completion(_approve(ports, caller, asked_for, message), "approve")
    return answered.to(lambda outcome: _as_transaction(outcome, caller) if isinstance(outcome, Signed) else outcome)


async def deny(ports: Ports, caller: TenantCaller, approval_id: str, body: DenyBody) -> Answered[Denied]:
    """Deny by the item's id."""
    message = Deny(approval_id=approval_id, digest=body.digest, reason=body.reason)
    answered = await ports.workers.ask(message, caller)
    return answered.to(lambda d: Denied(d.approval_id, d.status, d.resolved_at, d.resolved_by))


async def reject_transaction(
    ports: Ports, caller: TenantCaller, ref: AgentRef, tx_id: str, body: DenyBody
) -> Answered[RejectedTransaction]:
    """Deny by the agent's transaction."""
    message = Deny(agent=ref.agent, tx_id=tx_id, digest=body.digest, reason=body.reason)
    answered = await ports.workers.ask(message, caller)
    return answered.to(lambda d: RejectedTransaction(d.tx_id, d.approval_id, d.status, d.resolved_at, d.resolved_by))


async def _approve(
    ports: Ports, caller: TenantCaller, asked_for: store.Asked | None, message: Approve
) -> Answered[Signed | NotApproved]:
    if asked_for is None:
        raise ApprovalAbsent
    preparation = await _prepare(ports, asked_for)
    message = msgspec.structs.replace(message, prepared=preparation.prepared)
    answered = await ports.workers.ask(message, caller)
    match answered.answer:
        case Signed() as signed:
            await send_if_asked(ports, asked_for.agent, signed, replayed=answered.replayed)
            return Answered(signed, answered.replayed)
        case Voted() as voted:
            return Answered(_as_vote(voted), answered.replayed)
        case Refused() as outcome:
            return Answered(_as_refusal(outcome), answered.replayed)
        case NeedsPreparation():
            raise preparation.problem or UpstreamFailed
        case other:
            raise TypeError(f"the signer answered an approval with {type(other).__name__}")


async def _prepare(ports: Ports, asked_for: store.Asked) -> Preparation:
    """Prepared afresh: what a node said when the order was queued may be hours old."""

    async def sender(family: str) -> str:
        return (await agents.get(ports.pool, asked_for.agent)).wallet_addresses.of(family)

    order = load_order(asked_for.kind, asked_for.order_text)
    return await prepare(ports, asked_for.agent.tenant, order, sender)


def _as_refusal(outcome: Refused) -> Declined[ApprovalRefused] | Throttled[PolicyRateLimited]:
    answer = refusal(outcome)
    if isinstance(answer, Throttled):
        return answer
    code: Literal["policy_refused", "quorum_needed"] = "quorum_needed" if outcome.lacks_votes else "policy_refused"
    return Declined(ApprovalRefused(outcome.tx_id, outcome.results, code), outcome.reason)


def _as_vote(outcome: Voted) -> Deferred[VoteTaken]:
    votes = VotesTaken(outcome.have, outcome.need, outcome.by)
    missing = outcome.need - outcome.have
    return Deferred(
        VoteTaken(outcome.approval_id, outcome.tx_id, votes),
        f"Your vote was taken. The order is signed once {missing} more {'vote has' if missing == 1 else 'votes have'} "
        "been given.",
    )


def _as_approval(outcome: Signed, caller: TenantCaller) -> Approved:
    whole = _whole(outcome, caller)
    return Approved(outcome.approval_id or "", "approved", outcome.tx_hash, outcome.resolved_at or "", *whole)


def _as_transaction(outcome: Signed, caller: TenantCaller) -> ApprovedTransaction:
    return ApprovedTransaction(outcome.tx_id, outcome.tx_hash, *_whole(outcome, caller))


def _whole(outcome: Signed, caller: TenantCaller) -> tuple[str | None, int | None, str | None]:
    """The transaction of a PSBT that was finished, its size and fee; only for those who may send it."""
    psbt = outcome.psbt
    if psbt is None or psbt.final is None or not sees_signatures(caller):
        return None, None, None
    return psbt.final.hex(), psbt.vsize, str(psbt.fee)
