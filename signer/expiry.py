"""The end of an approval that nobody decided in time.

The scheduler only says which one; whether its time is up is the database's to know, in the statement that ends it. So
approve, deny and this one are decided in one place: behind the agent's row, by who finds the item pending.
"""

import msgspec

from custody.kit.act import Act
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.orders import Expire, Moved
from custody.webhooks.later_events import TxDenied
from custody.webhooks.payload import encode_events
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from signer import stored_order
from signer.approvals import note_decided
from signer.context import Signer

_READ = "SELECT * FROM approval_read($1, $2, NULL, NULL)"
_EXPIRE = "SELECT expire_write($1, $2, $3, $4, $5)"
_ACTOR = "expiry"


async def expire(signer: Signer, message: Expire, call: Call[None]) -> Moved:
    """End one item if it is pending and due; `unchanged` if it is decided, not due, or not there."""
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, message.tenant, message.approval)
    if row is None:
        return Moved("unchanged")
    metadata = {"agentId": row["agent_id"], "approvalId": str(row["id"]), "digest": row["digest"].hex()}
    told = msgspec.json.encode(metadata).decode()
    # No caller and no Idempotency-Key: what is asked twice finds the item resolved.
    done = Act(_ACTOR, None, None, None, None, "system", _ACTOR, told, call.origin_row)
    expired = TxDenied(**stored_order.show(row), approval_id=str(row["id"]), reason="expired", resolved_by="system")
    try:
        async with signer.queues.turn_of(message.tenant, row["agent_id"]), signer.pool.acquire() as connection:
            if row["expired"]:
                note_decided(signer, str(row["id"]), row["release_at"])
            result = await connection.fetchval(
                _EXPIRE, message.tenant, done, row["agent_id"], row["id"], encode_events(expired)
            )
    except TooManyWaiting:
        raise Busy from None
    return Moved(result)
