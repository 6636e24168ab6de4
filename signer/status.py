"""The signer's word on itself: its public keys, and how it is."""

from custody.protocol.common import Health, KeySet, PublicKeys, Status
from custody.protocol.frames import VERSION
from custody.worker.call import Call
from signer.context import Signer

# Of audit logs that are sealed no more, so many are named.
MOST_NAMED = 20


async def public_keys(signer: Signer, _message: PublicKeys, _ask: Call[None]) -> KeySet:
    """The public halves of the token and statement keys, as JWKs."""
    return KeySet(signer.minter.jwks() + signer.statement_keys.jwks(signer.public_url))


async def status(signer: Signer, _message: Status, _ask: Call[None]) -> Health:
    """Liveness and counters."""
    return Health(
        version=VERSION,
        counters={
            **signer.counters,
            "orders_waiting": len(signer.waiting),
            "writes_waiting": len(signer.writes),
            "states_kept": len(signer.kept),
        },
        waiting=len(signer.tasks),
        room=await signer.room.there(signer.pool),
        commits=await signer.commits.come_back(signer.pool, signer.acknowledged.look),
        history=not signer.acknowledged.are_lost,
        stopped_logs=sorted(signer.audit_log.stopped)[:MOST_NAMED],
    )
