"""The report of identity on itself: its public keys, and its health."""

from custody.protocol.common import Health, KeySet, PublicKeys, Status
from custody.protocol.frames import VERSION
from custody.worker.call import Call
from identity.context import Identity


async def public_keys(identity: Identity, _message: PublicKeys, _ask: Call[None]) -> KeySet:
    """The public halves of the keys that people's tokens are signed with, as JWKs."""
    return KeySet(identity.minter.jwks())


async def status(identity: Identity, _message: Status, _ask: Call[None]) -> Health:
    """Liveness and counters."""
    return Health(
        version=VERSION,
        counters=dict(identity.counters),
        waiting=len(identity.tasks),
        room=await identity.room.there(identity.pool),
    )
