"""A worker's half of `Idempotency-Key`: its answer is stored in the transaction that acts."""

from typing import Any

import msgspec

from custody.protocol.refusals import IdempotencyMismatch, IdempotencySecretShown
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenPlatform
from custody.worker.state import Worker

_encode = msgspec.msgpack.Encoder().encode


class IdempotencyRace(Exception):
    """Another request with the same key has just committed; a retry finds its answer."""


def pack(answer: Any) -> bytes:
    """An answer as it is stored and sent."""
    return _encode(answer)


async def earlier(worker: Worker, call: Call[Any]) -> bytes | None:
    """The answer that an earlier request with this key got, packed, if there was one."""
    key = call.key
    if key is None:
        return None
    tenant = PLATFORM if isinstance(call.caller, ProvenPlatform) else call.caller.tenant
    async with worker.pool.acquire() as connection:
        row = await connection.fetchrow(
            "SELECT * FROM idempotency_find($1, $2, $3, $4)", tenant, call.caller.principal, key.route, key.key_hash
        )
    if row is None:
        return None
    if row["fingerprint"] != key.fingerprint:
        raise IdempotencyMismatch
    if row["answer"] is None:
        raise IdempotencySecretShown
    answer: bytes = row["answer"]
    return answer
