"""The signer's word on itself: its public keys, how it is, and the prices that it goes by."""

from custody.protocol.common import Health, KeySet, PublicKeys, Status
from custody.protocol.frames import VERSION
from custody.protocol.signer.operation import PricesTaken, TakePrices
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
        prices=None if signer.issued_prices is None else signer.issued_prices.health(),
    )


async def take_prices(signer: Signer, message: TakePrices, _ask: Call[None]) -> PricesTaken:
    """Take the prices of an endpoint, if the operator's key signed them and they are the newest."""
    if signer.issued_prices is None:
        return PricesTaken("no_key")
    return PricesTaken(signer.issued_prices.take(message.body, message.signature))
