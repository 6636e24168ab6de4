"""How an act of administration begins and ends: its turn, the credential looked at again, its log, its answer kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from custody.kit import tokens
from custody.kit.errors import Conflict
from custody.protocol.messages import Outcome
from signer.context import Ask, Signer
from signer.idempotency import IdempotencyRace, packed
from signer.proofs import PLATFORM, ProvenPlatform, ProvenTenant
from signer.turns import TooManyWaiting

# The queue of a tenant's administration; no agent can have this id.
ADMINISTRATION = "/administration"
_BEGIN = "SELECT begin_administration($1, $2)"
_DEMAND_PLATFORM_KEY = "SELECT demand_platform_key($1)"
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_AUDIT = "SELECT audit_append('system', $1, $2, $3, $4, $5, $6)"
_REMEMBER = "SELECT idempotency_put($1, $2, $3, $4, $5, $6, NULL)"


class AdministrationMoving(Conflict):
    """This tenant is being changed by many at once; repeat the request."""


@asynccontextmanager
async def acting(signer: Signer, ask: Ask[ProvenTenant]) -> AsyncIterator[Any]:
    """A transaction in the caller's tenant, alone in its administration, for a credential that holds at this moment.

    Acts of one tenant wait for each other in the database; waiting here, they take no connection meanwhile.
    """
    tenant = ask.caller.tenant
    try:
        async with (
            signer.turns.turn_of(tenant, ADMINISTRATION),
            signer.pool.acquire() as connection,
            connection.transaction(),
        ):
            await connection.execute(_BEGIN, tenant, ask.caller.standing)
            yield connection
    except TooManyWaiting:
        raise AdministrationMoving from None


@asynccontextmanager
async def operating(signer: Signer, ask: Ask[ProvenPlatform], tenant: str = PLATFORM) -> AsyncIterator[Any]:
    """The same for the operator, in any tenant, or in his own log."""
    async with signer.pool.acquire() as connection, connection.transaction():
        await demand_platform_key(connection, ask)
        await connection.execute(_BEGIN, tenant, None)
        yield connection


async def demand_platform_key(connection: Any, ask: Ask[Any]) -> None:
    """Raise unless the operator's key holds now; what revokes it waits for the transaction that this is in."""
    await connection.execute(_DEMAND_PLATFORM_KEY, tokens.digest(ask.shown))


async def tell(connection: Any, ask: Ask[Any], action: str, kind: str, resource: str, **metadata: Any) -> None:
    """Append to the log of the tenant that the transaction is in."""
    said = msgspec.json.encode(metadata).decode()
    await connection.execute(_AUDIT, ask.caller.principal, action, kind, resource, said, ask.origin_row)


async def remember(connection: Any, ask: Ask[Any], outcome: Outcome | None) -> None:
    """Keep the answer under the request's Idempotency-Key, as the last thing; None: it shows a secret, this once."""
    if ask.key is None:
        return
    tenant = PLATFORM if isinstance(ask.caller, ProvenPlatform) else ask.caller.tenant
    await connection.execute(_SCOPE, tenant)
    answer = packed(outcome) if outcome is not None else None
    if not await connection.fetchval(_REMEMBER, tenant, ask.caller.principal, *ask.key_row, answer):
        raise IdempotencyRace
