"""A scheduler's news of a signed order, from a node. Decision 0028.

The signer cannot check a node's word, so nothing is built on it: it moves a state forward, once, and leaves an audit
row with what the node showed, and the event. Spend, rate and limits stay as they were when the order was signed.
"""

from typing import Any, Final

import msgspec

from custody.kit.errors import Invalid
from custody.protocol.signer.orders import BroadcastOutcome, ChainOutcome, Moved
from custody.transactions.backoff import FIRST_LOOK
from custody.webhooks.events import TxConfirmed, TxFailed
from custody.webhooks.payload import emitted
from custody.worker.call import Call
from signer import stored_order
from signer.context import Signer

_READ = "SELECT * FROM outcome_read($1, $2)"
_WRITE = "SELECT outcome_write($1, $2, $3, $4, $5, $6, $7, $8)"
_SENT = "SELECT outcome_write($1, $2, $3, $4, $5)"
# The word of `statusDetail` for each outcome that is a failure, as outcome_write has it.
FAILURES: Final = {"reverted": "execution_reverted", "replaced": "replaced", "expired": "blockhash_expired"}


class NoEvidence(Invalid):
    """A final outcome needs the block that shows it."""


async def learn(signer: Signer, message: ChainOutcome, call: Call[None]) -> Moved:
    """Write down an outcome; `unchanged` when the order is already final, unknown, or known to be sent."""
    if message.outcome != "sent" and message.block is None:
        raise NoEvidence
    async with signer.pool.acquire() as connection:
        events = "[]"
        if message.outcome != "sent":
            row = await connection.fetchrow(_READ, message.tenant, message.tx_id)
            if row is None:
                return Moved("unchanged")
            events = _event(row, message)
        result = await connection.fetchval(
            _WRITE,
            message.tenant,
            message.tx_id,
            message.outcome,
            FIRST_LOOK,
            call.origin_row,
            _evidence(message),
            events,
            message.fee_paid,
        )
    return Moved(result)


async def note_sent(signer: Signer, message: BroadcastOutcome, call: Call[None]) -> Moved:
    """Write down that a node has the bytes."""
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _SENT, message.tenant, message.tx_id, message.outcome, FIRST_LOOK, call.origin_row
        )
    return Moved(result)


def _event(row: Any, message: ChainOutcome) -> str:
    told: dict[str, Any] = stored_order.told(row) | {
        "tx_hash": row["tx_hash"],
        "block": message.block,
        "block_hash": message.block_hash,
    }
    if message.outcome == "confirmed":
        return emitted(TxConfirmed(**told))
    taken_by = message.by if message.outcome == "replaced" else None
    return emitted(TxFailed(**told, reason=FAILURES[message.outcome], taken_by=taken_by))


def _evidence(message: ChainOutcome) -> str:
    shown = {
        "block": message.block,
        "blockHash": message.block_hash,
        "takenBy": message.by,
        "outcome": message.outcome,
        "feePaid": message.fee_paid,
    }
    return msgspec.json.encode({name: value for name, value in shown.items() if value is not None}).decode()
