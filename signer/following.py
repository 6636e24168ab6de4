"""What a scheduler learned of a signed order from a node. Decisions 4, Decision 0028.

The signer cannot check a node's word, so nothing is built on it: it moves a state forward, once, and leaves an audit
row with what the node showed. Spend, rate and limits stay as they were when the order was signed.
"""

import msgspec

from custody.kit.errors import Invalid
from custody.protocol.messages import ChainOutcome, Done
from signer.context import Ask, Signer

_WRITE = "SELECT outcome_write($1, $2, $3, $4, $5)"


class NoEvidence(Invalid):
    """A final outcome needs the block that shows it."""


async def learn(signer: Signer, message: ChainOutcome, ask: Ask[None]) -> Done:
    """Write down an outcome; `unchanged` when the order is already final, unknown, or known to be sent."""
    if message.outcome != "sent" and message.block is None:
        raise NoEvidence
    async with signer.pool.acquire() as connection:
        result = await connection.fetchval(
            _WRITE, message.tenant, message.tx_id, message.outcome, ask.origin_row, _evidence(message)
        )
    return Done({"result": result})


def _evidence(message: ChainOutcome) -> str:
    shown = {"block": message.block, "blockHash": message.block_hash, "takenBy": message.by, "outcome": message.outcome}
    return msgspec.json.encode({name: value for name, value in shown.items() if value is not None}).decode()
