"""The frame of an act of administration: its turn, the credential looked at again, its log, its answer kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from custody.kit import tokens
from custody.protocol.refusals import AdministrationMoving, TenantAbsent
from custody.worker.act import act
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.idempotency import IdempotencyRace, pack
from custody.worker.proven import PLATFORM, ProvenPlatform, ProvenTenant
from custody.worker.state import Worker

# The queue of a tenant's administration; no agent can have this id.
ADMINISTRATION = "/administration"
_BEGIN = "SELECT begin_administration($1, $2)"
_DEMAND_PLATFORM_KEY = "SELECT demand_platform_key($1)"
_TENANT = "SELECT id FROM tenants WHERE id = $1"
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_AUDIT = "SELECT audit_append('system', $1, $2, $3, $4, $5, $6)"
_REMEMBER = "SELECT idempotency_put($1, $2)"


@asynccontextmanager
async def acting(worker: Worker, call: Call[ProvenTenant]) -> AsyncIterator[Any]:
    """A transaction in the caller's tenant, alone in its administration, for a credential that holds at this moment.

    Acts of one tenant wait for each other in the database; waiting here, they take no connection meanwhile.
    """
    tenant = call.caller.tenant
    try:
        async with (
            worker.queues.turn_of(tenant, ADMINISTRATION),
            worker.pool.acquire() as connection,
            connection.transaction(),
        ):
            await connection.execute(_BEGIN, tenant, call.caller.standing)
            yield connection
    except TooManyWaiting:
        raise AdministrationMoving from None


@asynccontextmanager
async def operating(worker: Worker, call: Call[ProvenPlatform], tenant: str = PLATFORM) -> AsyncIterator[Any]:
    """The same for the operator, in any tenant, or in their own log."""
    async with worker.pool.acquire() as connection, connection.transaction():
        await demand_platform_key(connection, call)
        await connection.execute(_BEGIN, tenant, None)
        yield connection


@asynccontextmanager
async def operating_in(worker: Worker, call: Call[ProvenPlatform], tenant: str) -> AsyncIterator[Any]:
    """The same in a tenant that must be there; TenantAbsent if it is not."""
    async with operating(worker, call, tenant) as connection:
        if await connection.fetchval(_TENANT, tenant) is None:
            raise TenantAbsent
        yield connection


async def enter(connection: Any, tenant: str) -> None:
    """Go on in another tenant, or in the operator's log."""
    await connection.execute(_SCOPE, tenant)


async def demand_platform_key(connection: Any, call: Call[Any]) -> None:
    """Raise unless the operator's key holds now; what revokes it waits for the transaction that this is in."""
    await connection.execute(_DEMAND_PLATFORM_KEY, tokens.digest(call.credential))


async def tell(connection: Any, call: Call[Any], action: str, kind: str, resource: str, **metadata: Any) -> None:
    """Append to the log of the tenant that the transaction is in."""
    said = msgspec.json.encode(metadata).decode()
    await connection.execute(_AUDIT, call.caller.principal, vet(action), kind, resource, said, call.origin_row)


async def remember(connection: Any, call: Call[Any], answer: object | None) -> None:
    """Keep the answer under the request's Idempotency-Key, as the last thing; None: it shows a secret, this once."""
    if call.key is None:
        return
    tenant = PLATFORM if isinstance(call.caller, ProvenPlatform) else call.caller.tenant
    await enter(connection, tenant)
    stored = pack(answer) if answer is not None else None
    if not await connection.fetchval(_REMEMBER, tenant, act(call, stored)):
        raise IdempotencyRace
