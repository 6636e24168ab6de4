"""A person's decision over a queued order: approve is the sign path again, deny is one write.

Every time here is the database's: it knows when the item was queued, when it ends, and what the rate windows hold.
"""

from typing import Any

from custody.chains.orders import stored
from custody.kit import clock
from custody.kit.answers import Answered
from custody.kit.errors import Unavailable
from custody.kit.refs import AgentRef
from custody.protocol.signer.orders import Approve, Decided, Deny, OrderDenied
from custody.protocol.signer.refusals import (
    ApprovalAbsent,
    ApprovalChanged,
    ApprovalExpired,
    ApprovalResolved,
    Busy,
    VoteRefused,
)
from custody.webhooks.events import TxDenied
from custody.webhooks.payload import emitted
from custody.worker.act import act
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import packed
from custody.worker.proven import ProvenSession, ProvenTenant
from signer import replace, stored_order
from signer.approved import Approved
from signer.ballots import GivenVote, given_vote
from signer.context import Signer
from signer.decide import settle
from signer.guarded_write import Unclaimed
from signer.orders.kind import Inputs
from signer.record import APPROVAL_MAC, approval_content
from signer.sign_order import decided
from signer.signing_attempt import Claim, SigningAttempt

_READ = "SELECT *, service_now() AS now FROM approval_read($1, $2, $3, $4)"
_DENY = "SELECT deny_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"


async def approve(signer: Signer, message: Approve, call: Call[ProvenTenant]) -> Answered[Decided]:
    """Judge the order again by today's policy and spend, sign it and claim the approval, all in one write.

    When today's hard rules refuse, nothing is written and the item stays pending.
    """
    row = await _pending(signer, call.caller, message)
    order = stored(row["kind"], row["order_text"])
    replaced = await replace.stored(signer, AgentRef(call.caller.tenant, row["agent_id"]), order, str(row["tx_id"]))
    kind = signer.kinds.of(order)
    draft = kind.check(order, Inputs(signer.chains, message.prepared, approving=True, replaced=replaced))
    _check_order(signer, call.caller.tenant, row, draft.digest)
    # Compared with what will be signed, not with a column beside it.
    if message.digest not in (None, draft.digest.hex()) or message.approval_id not in (None, str(row["id"])):
        raise ApprovalChanged
    given = _vote_of(call.caller, message, row)
    claim = Claim(str(row["id"]), row["requested_at"], message.comment, row["authorization_text"])
    ref = AgentRef(call.caller.tenant, row["agent_id"])
    try:
        way = Approved(signer, claim, given)
        attempt = SigningAttempt(ref=ref, tx_id=str(row["tx_id"]), kind=kind, draft=draft, call=call, way=way)
        return decided(await settle(signer, ref, lambda: attempt))
    except Unclaimed:
        # Somebody else was faster: say what became of it.
        await _pending(signer, call.caller, message)
        raise ApprovalExpired from None


def _vote_of(caller: ProvenTenant, message: Approve, row: Any) -> GivenVote | None:
    """The vote that came with the request; a person's alone."""
    if (vote := message.vote) is None:
        return None
    if not isinstance(caller, ProvenSession):
        raise VoteRefused("Only a person can vote: sign in, and send the vote with your session.")
    return given_vote(caller.user, vote, row["expires_at"])


def _check_order(signer: Signer, tenant: str, row: Any, digest: bytes) -> None:
    """The stored order must be the one that was queued: a database writer cannot swap what a person approves."""
    content = approval_content(
        tenant,
        row["agent_id"],
        str(row["incarnation"]),
        str(row["tx_id"]),
        str(row["id"]),
        digest,
        row["authorization_text"],
    )
    signer.sealer.check_mac(row["mac"], APPROVAL_MAC, tenant, content)


async def deny(signer: Signer, message: Deny, call: Call[ProvenTenant]) -> OrderDenied:
    """Reject the order; it can never be signed afterwards."""
    caller = call.caller
    row = await _pending(signer, caller, message)
    resolved = row["now"]
    outcome = OrderDenied(str(row["id"]), str(row["tx_id"]), "rejected", clock.iso(resolved), "manual")
    try:
        async with signer.queues.turn_of(caller.tenant, row["agent_id"]), signer.pool.acquire() as connection:
            result = await connection.fetchval(
                _DENY,
                caller.tenant,
                caller.standing,
                act(call, packed(outcome), **_metadata(row), reason=message.reason),
                row["agent_id"],
                row["id"],
                row["digest"],
                message.reason,
                caller.user if isinstance(caller, ProvenSession) else None,
                resolved,
                _denied_event(row, message.reason),
            )
    except TooManyWaiting:
        raise Busy from None
    if result == "unclaimed":
        # Somebody else was faster: say what became of it.
        await _pending(signer, caller, message)
        raise ApprovalExpired
    if result != "done":
        raise Unavailable
    return outcome


async def _pending(signer: Signer, caller: ProvenTenant, message: Approve | Deny) -> Any:
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, caller.tenant, message.approval_id, message.tx_id, message.agent)
    if row is None:
        raise ApprovalAbsent
    if row["status"] == "expired" or (row["status"] == "pending" and row["expired"]):
        raise ApprovalExpired
    if row["status"] != "pending":
        raise ApprovalResolved(f"This approval was already {row['status']}.")
    if message.digest is not None and message.digest != row["digest"].hex():
        raise ApprovalChanged
    return row


def _metadata(row: Any) -> dict[str, str]:
    return {"agentId": row["agent_id"], "approvalId": str(row["id"]), "digest": row["digest"].hex()}


def _denied_event(row: Any, reason: str | None) -> str:
    return emitted(TxDenied(**stored_order.told(row), approval_id=str(row["id"]), reason=reason, resolved_by="manual"))
