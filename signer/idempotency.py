"""The signer's half of `Idempotency-Key`: its answer is stored in the transaction that acts. Decisions 6."""

from typing import Any

import msgspec

from custody.kit.errors import Conflict
from custody.protocol.messages import Done, Outcome, Queued, Refused, Signed
from signer.context import Ask, Signer
from signer.proofs import PLATFORM, ProvenPlatform

_decode = msgspec.msgpack.Decoder(Signed | Queued | Refused | Done).decode
_encode = msgspec.msgpack.Encoder().encode


class IdempotencyMismatch(Conflict):
    """This Idempotency-Key was used for another request."""


class IdempotencySecretShown(Conflict):
    """This request was already answered, with a secret that is shown only once and never stored."""


class IdempotencyRace(Exception):
    """Another request with the same key committed a moment ago; whoever sees this asks again and finds its answer."""


def packed(outcome: Outcome) -> bytes:
    """An answer as it is stored."""
    return _encode(outcome)


async def earlier(signer: Signer, ask: Ask[Any]) -> Outcome | None:
    """The answer that an earlier request with this key got, if there was one."""
    key = ask.key
    if key is None:
        return None
    tenant = PLATFORM if isinstance(ask.caller, ProvenPlatform) else ask.caller.tenant
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(
            "SELECT * FROM idempotency_find($1, $2, $3, $4)", tenant, ask.caller.principal, key.route, key.key_hash
        )
    if row is None:
        return None
    if row["fingerprint"] != key.fingerprint:
        raise IdempotencyMismatch
    if row["answer"] is None:
        raise IdempotencySecretShown
    answer: Outcome = _decode(row["answer"])
    return answer
