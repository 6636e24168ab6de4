"""The challenge that a passkey signs: made here, for one purpose, person and session, for five minutes, and for once.

A challenge says under a MAC what it was made for and until when; its row only remembers that it was not used yet. So
anyone who writes the database can not make one, nor wake one that has ended.
"""

import os
from datetime import timedelta
from typing import Any, Literal

from custody.kit import clock
from custody.protocol.identity.refusals import ChallengeInvalid
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import Tampered, fields, sha256
from identity.context import Identity

SECONDS = 300
Purpose = Literal["register", "sign_in", "step_up", "approve"]
# An approval, and the digest of its order: what a touch for one item is about.
Item = tuple[str, str]
_MAC = "passkey-challenge"
_NONCE_BYTES, _TIME_BYTES = 16, 4
_HEAD_BYTES = _NONCE_BYTES + _TIME_BYTES
_PUT = "INSERT INTO challenges (challenge_hash, purpose, user_id, session_id, expires_at) VALUES ($1, $2, $3, $4, $5)"
# Anyone who asks clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM challenges WHERE challenge_hash IN "
    "(SELECT challenge_hash FROM challenges WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_USE = "DELETE FROM challenges WHERE challenge_hash = $1 RETURNING expires_at > service_now()"


async def new(
    connection: Any,
    identity: Identity,
    purpose: Purpose,
    caller: ProvenSession | None = None,
    item: Item | None = None,
) -> bytes:
    """A challenge for this person's session, or for anybody who signs in; for one item, where there is one."""
    until = clock.now() + timedelta(seconds=SECONDS)
    head = os.urandom(_NONCE_BYTES) + int(until.timestamp()).to_bytes(_TIME_BYTES, "big")
    challenge = head + identity.sealer.mac(_MAC, PLATFORM, _content(head, purpose, caller, item))
    user, session = (caller.user, caller.session) if caller else (None, None)
    # The row is for looking after; what a challenge is good for, its MAC says.
    kept = "step_up" if purpose == "approve" else purpose
    await connection.execute(_PUT, sha256(challenge), kept, user, session, until)
    await connection.execute(_CLEAR)
    return challenge


async def take(
    identity: Identity,
    challenge: bytes,
    purpose: Purpose,
    caller: ProvenSession | None = None,
    item: Item | None = None,
) -> None:
    """Use up a challenge before the answer to it is looked at, for good; ChallengeInvalid if it can not be."""
    head = challenge[:_HEAD_BYTES]
    try:
        identity.sealer.check_mac(challenge[_HEAD_BYTES:], _MAC, PLATFORM, _content(head, purpose, caller, item))
    except Tampered:
        raise ChallengeInvalid from None
    if int.from_bytes(head[_NONCE_BYTES:], "big") < int(clock.now().timestamp()):
        raise ChallengeInvalid
    async with identity.pool.acquire() as connection:
        if not await connection.fetchval(_USE, sha256(challenge)):
            raise ChallengeInvalid


def _content(head: bytes, purpose: Purpose, caller: ProvenSession | None, item: Item | None) -> bytes:
    return fields(head, purpose, *((caller.user, caller.session) if caller else ()), *(item or ()))
