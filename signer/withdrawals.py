"""An agent takes back an order of its own that waits for a person: one write, which meets approve, deny and expiry.

It needs no more than the agent's token: what is taken away is only what the agent itself asked for.
"""

from typing import Any

import msgspec

from custody.kit import clock
from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.orders import Withdraw, Withdrawn
from custody.protocol.signer.refusals import ApprovalExpired, ApprovalResolved, TransactionAbsent
from custody.webhooks.later_events import TxDenied
from custody.webhooks.payload import encode_events
from custody.worker.act import act
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import earlier, pack
from custody.worker.proven import ProvenAgent
from signer import stored_order
from signer.approvals import note_decided
from signer.context import Signer
from signer.sign_order import acting_for

_READ = "SELECT * FROM withdrawal_read($1, $2, $3)"
_WRITE = "SELECT withdraw_write($1, $2, $3, $4, $5, $6, $7, $8)"
_decode = msgspec.msgpack.Decoder(Withdrawn).decode


async def withdraw(signer: Signer, message: Withdraw, call: Call[ProvenAgent]) -> Answered[Withdrawn]:
    """Reject an order that waits; what was withdrawn before is answered once more."""
    ref = acting_for(call, message.agent)
    row = await _read(signer, ref, message.tx_id, call.caller)
    if (answer := await earlier(signer, call)) is not None:
        return Answered(_decode(answer), replayed=True)
    if (before := _find_end(row)) is not None:
        return Answered(before)
    outcome = Withdrawn(str(row["tx_id"]), str(row["approval"]), clock.iso(row["now"]))
    told = {"agentId": ref.agent, "approvalId": outcome.approval_id, "digest": row["digest"].hex()}
    event = TxDenied(**stored_order.show(row), approval_id=outcome.approval_id, reason="withdrawn", resolved_by="agent")
    try:
        async with signer.queues.turn_of(ref.tenant, ref.agent), signer.pool.acquire() as connection:
            note_decided(signer, outcome.approval_id, row["release_at"])
            result = await connection.fetchval(
                _WRITE,
                ref.tenant,
                call.caller.incarnation,
                call.caller.epoch,
                act(call, pack(outcome), agent=ref.agent, **told),
                ref.agent,
                row["approval"],
                row["now"],
                encode_events(event),
            )
    except TooManyWaiting:
        raise Busy from None
    if result == "done":
        return Answered(outcome)
    # Somebody else was faster: say what became of it.
    if (before := _find_end(await _read(signer, ref, message.tx_id, call.caller))) is not None:
        return Answered(before)
    raise Busy


async def _read(signer: Signer, ref: AgentRef, tx_id: str, caller: ProvenAgent) -> Any:
    """The order with its approval, for a token that still counts."""
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, ref.tenant, ref.agent, tx_id)
    if row is None:
        raise BadProof
    if (caller.incarnation, caller.epoch) != (str(row["incarnation"]), row["token_epoch"]):
        raise TokenRevoked
    return row


def _find_end(row: Any) -> Withdrawn | None:
    """The answer to a withdrawal that was done before; None while it waits, raises where it ended otherwise."""
    if row["tx_id"] is None:
        raise TransactionAbsent
    status, detail = row["tx_status"], row["status_detail"]
    if status == "pending_approval":
        if row["expired"]:
            raise ApprovalExpired
        return None
    if detail == "withdrawn":
        return Withdrawn(str(row["tx_id"]), str(row["approval"]), clock.iso(row["resolved_at"]))
    if detail == "approval_expired":
        raise ApprovalExpired
    raise ApprovalResolved(f"Only an order that waits for a person can be withdrawn; this one is {status}.")
