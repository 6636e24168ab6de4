"""A scheduler's news of a signed order, from a node. Decision 0028.

The signer cannot check a node's word, so nothing is built on it: it moves a state forward, once, and leaves an audit
row with what the node showed, and the event. Spend, rate and limits stay as they were when the order was signed.
"""

from typing import Any, Final

import msgspec

from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.protocol.signer.orders import BroadcastOutcome, ChainOutcome, Moved
from custody.transactions.backoff import FIRST_LOOK
from custody.webhooks.later_events import TxConfirmed, TxFailed
from custody.webhooks.payload import encode_events
from custody.worker.call import Call
from custody.worker.sealing import Tampered
from signer import ledger, stored_order
from signer.breakers import BreakerRow, row_of
from signer.context import Signer
from signer.ledger import Question
from signer.rollback_journal import RolledBack

_READ = "SELECT * FROM outcome_read($1, $2)"
_WRITE = "SELECT outcome_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_SENT = "SELECT outcome_write($1, $2, $3, $4, $5)"
# The word of `statusDetail` for each outcome that is a failure, as outcome_write has it.
FAILURES: Final = {
    "reverted": "execution_reverted",
    "replaced": "replaced",
    "expired": "blockhash_expired",
    "lapsed": "authorization_expired",
    "canceled": "authorization_canceled",
}


# What nobody replaced or took back, and yet did not happen: circuit breakers count it.
_COUNTED: Final = ("reverted", "expired", "lapsed")


class NoEvidence(Invalid):
    """A final outcome needs the block that shows it."""


async def learn(signer: Signer, message: ChainOutcome, call: Call[None]) -> Moved:
    """Write down an outcome; `unchanged` when the order is already final, unknown, or known to be sent."""
    if message.outcome != "sent" and message.block is None:
        raise NoEvidence
    async with signer.pool.acquire() as connection:
        events, settled_by, breaker = "[]", None, None
        if message.outcome != "sent":
            row = await connection.fetchrow(_READ, message.tenant, message.tx_id)
            if row is None:
                return Moved("unchanged")
            # A payment has no hash of its own: others take it to the chain.
            if row["tx_hash"] is None and message.outcome in ("confirmed", "reverted"):
                settled_by = message.by
            events = _event(row, message, settled_by)
            if row["breakers"] and message.outcome in _COUNTED:
                breaker = await _breaker(signer, connection, AgentRef(message.tenant, row["agent_id"]), message.tx_id)
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
            settled_by,
            breaker,
        )
    return Moved(result)


async def _breaker(signer: Signer, connection: Any, ref: AgentRef, tx_id: str) -> BreakerRow | None:
    """Find the rules of today that count a failure; none where they are not whole, for then nothing is signed."""
    facts = await ledger.read(connection, Question(ref=ref, family="", principal="", key=None))
    if facts is None:
        return None
    try:
        own = signer.policies.open(
            ref.tenant, ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        rules = signer.sets.of_agent(ref.tenant, own, facts.sets).rules
    except (Tampered, RolledBack):
        return None
    return row_of(rules, "failed", tx_id)


async def note_sent(signer: Signer, message: BroadcastOutcome, call: Call[None]) -> Moved:
    """Write down that a node has the bytes."""
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _SENT, message.tenant, message.tx_id, message.outcome, FIRST_LOOK, call.origin_row
        )
    return Moved(result)


def _event(row: Any, message: ChainOutcome, settled_by: str | None) -> str:
    told: dict[str, Any] = stored_order.show(row) | {
        "tx_hash": row["tx_hash"] or settled_by,
        "block": message.block,
        "block_hash": message.block_hash,
    }
    if message.outcome == "confirmed":
        return encode_events(TxConfirmed(**told))
    taken_by = message.by if message.outcome == "replaced" else None
    return encode_events(TxFailed(**told, reason=FAILURES[message.outcome], taken_by=taken_by))


def _evidence(message: ChainOutcome) -> str:
    shown = {
        "block": message.block,
        "blockHash": message.block_hash,
        "takenBy": message.by,
        "outcome": message.outcome,
        "feePaid": message.fee_paid,
    }
    return msgspec.json.encode({name: value for name, value in shown.items() if value is not None}).decode()
