"""A person's decision over a queued order: approve is the sign path again, deny is one write.

Every time here is the database's: it knows when the item was queued, when it ends, and what the rate windows hold.
"""

from datetime import datetime
from typing import Any

from custody.chains.orders import Prepared, load_order
from custody.kit import clock
from custody.kit.answers import Answered
from custody.kit.errors import Unavailable
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.orders import Approve, Deny, OrderDenied
from custody.protocol.signer.outcomes import Decided
from custody.protocol.signer.refusals import (
    ApprovalAbsent,
    ApprovalChanged,
    ApprovalExpired,
    ApprovalResolved,
    VoteRefused,
)
from custody.webhooks.later_events import TxDenied
from custody.webhooks.payload import encode_events
from custody.worker.act import act
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenSession, ProvenTenant
from signer import replace, stored_order
from signer.approved import Approved
from signer.ballots import GivenVote, given_vote
from signer.context import Signer
from signer.delays import released_until
from signer.guarded_write import Unclaimed
from signer.orders.kind import AnyKind, Draft, Inputs
from signer.sign_order import decision_of
from signer.signing_attempt import Claim, SigningAttempt
from signer.statements import APPROVAL_MAC, approval_content, times_of
from signer.together import settle

_READ = "SELECT *, service_now() AS now FROM approval_read($1, $2, $3, $4)"
_DENY = "SELECT deny_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"


async def approve(signer: Signer, message: Approve, call: Call[ProvenTenant]) -> Answered[Decided]:
    """Judge the order again by today's policy and spend, sign it and claim the approval, all in one write.

    When today's hard rules refuse, nothing is written and the item stays pending.
    """
    row = await _pending(signer, call.caller, message)
    if row["release_at"] is not None and signer.claims.is_claimed(str(row["id"])):
        # What lets it wait again was put back in the database.
        raise ApprovalResolved("This approval was decided already; the agent must send a new request.")
    ref = AgentRef(call.caller.tenant, row["agent_id"])
    kind, draft = await draft_of(signer, ref, row, message.prepared)
    _check_item(call.caller, row, draft.digest)
    # Compared with what will be signed, not with a column beside it.
    if message.digest not in (None, draft.digest.hex()) or message.approval_id not in (None, str(row["id"])):
        raise ApprovalChanged
    given = _vote_of(call.caller, message, row)
    claim = claim_of(row, message.comment)
    try:
        way = Approved(signer, claim, given)
        attempt = SigningAttempt(ref=ref, tx_id=str(row["tx_id"]), kind=kind, draft=draft, call=call, way=way)
        return decision_of(await settle(signer, ref, lambda: attempt))
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


def _check_item(caller: ProvenTenant, row: Any, digest: bytes) -> None:
    """A token that a person got by one touch for one item approves that item, as it was read, and no other."""
    if isinstance(caller, ProvenSession) and caller.item not in (None, (str(row["id"]), digest.hex())):
        raise BadProof("This token is good for approving another item, or another order than this is by now.")


def claim_of(row: Any, comment: str | None = None) -> Claim:
    """The item, as it is claimed."""
    return Claim(str(row["id"]), row["requested_at"], comment, row["authorization_text"], times_of(row))


async def draft_of(signer: Signer, ref: AgentRef, row: Any, prepared: Prepared | None) -> tuple[AnyKind, Draft]:
    """Check the order of an item as it is now; Tampered where it is not the one that was queued."""
    order = load_order(row["kind"], row["order_text"])
    replaced = await replace.load(signer, ref, order, str(row["tx_id"]))
    kind = signer.kinds.of(order)
    unique = signer.unique_of(ref.tenant, str(row["tx_id"]))
    draft = kind.check(order, Inputs(signer.chains, prepared, approving=True, replaced=replaced, unique=unique))
    _check_order(signer, ref.tenant, row, draft.digest)
    return kind, draft


def note_decided(signer: Signer, approval: str, release_at: datetime | None) -> None:
    """Note beside the database, before the write, that nothing releases this item any more, whatever is put back."""
    if release_at is not None:
        signer.claims.claim(approval, until=released_until(release_at))


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
        times_of(row),
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
            note_decided(signer, str(row["id"]), row["release_at"])
            result = await connection.fetchval(
                _DENY,
                caller.tenant,
                caller.standing,
                act(call, pack(outcome), **_metadata(row), reason=message.reason),
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
    return encode_events(
        TxDenied(**stored_order.show(row), approval_id=str(row["id"]), reason=reason, resolved_by="manual")
    )
