"""An act that the api does itself: once under its Idempotency-Key, with its row in the audit trail."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import asyncpg
import msgspec

from custody.kit.act import Act
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.db import Pool, wait_for_replicas
from custody.kit.errors import Unavailable
from custody.kit.models import Scope, tenant_models
from custody.protocol.refusals import IdempotencyMismatch

_FIND: Final = "SELECT * FROM idempotency_find($1, $2, $3, $4)"
_FINISH: Final = "SELECT finish_account_act($1, $2, $3)"
# One act at a time in a tenant, so that what is counted stays so.
_TURN: Final = "SELECT pg_advisory_xact_lock(hashtextextended('accounts of ' || $1, 0))"
_TAKEN: Final = "CU001"
_TRIES: Final = 3


class Done[T](msgspec.Struct, frozen=True):
    """The outcome of an act, and its audit row."""

    answer: T
    action: str
    resource: str
    said: Mapping[str, object]


async def once[T](
    pool: Pool, caller: TenantCaller, shape: type[T], act: Callable[[Scope], Awaitable[Done[T]]]
) -> Answered[T]:
    """Act in one transaction with its audit row and its answer; a repetition under its key gets that answer."""
    for _ in range(_TRIES):
        if (answered := await earlier(pool, caller, shape)) is not None:
            return answered
        try:
            async with tenant_models(pool, caller.tenant, readonly=False) as scope:
                await scope.connection.execute(_TURN, caller.tenant)
                done = await act(scope)
                await _finish(scope, caller, done)
            return Answered(done.answer)
        except asyncpg.PostgresError as problem:
            # Another process has just done it: its answer is there now.
            if problem.sqlstate != _TAKEN:
                raise
    raise Unavailable


async def earlier[T](pool: Pool, caller: TenantCaller, shape: type[T]) -> Answered[T] | None:
    """Find the earlier answer to a request with this key; IdempotencyMismatch if that was another request."""
    if (key := caller.idempotency) is None:
        return None
    async with pool.acquire() as connection:
        row = await connection.fetchrow(_FIND, caller.tenant, caller.principal, key.route, key.key_hash)
        if row is None:
            return None
        if row["fingerprint"] != key.fingerprint:
            raise IdempotencyMismatch
        await wait_for_replicas(connection)
    return Answered(msgspec.msgpack.decode(row["answer"], type=shape), replayed=True)


async def _finish[T](scope: Scope, caller: TenantCaller, done: Done[T]) -> None:
    key, origin = caller.idempotency, caller.origin
    act = Act(
        caller.principal,
        None if key is None else key.route,
        None if key is None else key.key_hash,
        None if key is None else key.fingerprint,
        msgspec.msgpack.encode(done.answer),
        "system",
        caller.principal,
        msgspec.json.encode(done.said).decode(),
        [origin.request_id, origin.ip, origin.user_agent],
    )
    await scope.connection.execute(_FINISH, act, done.action, done.resource)
