"""The operator changes, deactivates and deletes people. Decision 0107.

What is a tenant's stays: its API keys, its agents and their tokens, also where the person made them.
"""

from typing import Any

from msgspec import UNSET

from custody.identity.provisioning import metadata_text
from custody.protocol.identity.refusals import LastOwner, UserAbsent, UserActive, UserHasTenant
from custody.protocol.identity.users import (
    ActedOn,
    ChangeUser,
    DeactivateUser,
    DeletedUser,
    DeleteUser,
    ReactivateUser,
)
from custody.worker.acts import enter, operating, remember, tell
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenPlatform
from identity.context import Identity
from identity.people.persons import personal

# Tenants that a refusal names.
MAX_NAMED = 10
_OWNED = "SELECT tenant_id, alone FROM owned_tenants($1, $2)"
_BEGIN = "SELECT begin_administration($1, NULL)"
_TENANT = "SELECT id FROM tenants WHERE id = $1"
_LOCK = "SELECT id, deactivated_at FROM users WHERE id = $1 FOR UPDATE"
_CHANGE = (
    "UPDATE users SET name = CASE WHEN $2 THEN $3 ELSE name END, custom_metadata = COALESCE($4, custom_metadata), "
    "updated_at = service_now() WHERE id = $1 RETURNING id"
)
_DEACTIVATE = (
    "UPDATE users SET deactivated_at = COALESCE(deactivated_at, service_now()), updated_at = service_now() "
    "WHERE id = $1"
)
_REACTIVATE = "UPDATE users SET deactivated_at = NULL, updated_at = service_now() WHERE id = $1"
# With the devices that were let in and have not fetched their session yet.
_END_SESSIONS = (
    "WITH turned_away AS (DELETE FROM device_codes WHERE user_id = $1 AND status = 'approved') "
    "UPDATE sessions SET revoked_at = service_now() WHERE user_id = $1 AND revoked_at IS NULL RETURNING id"
)
_DELETE = "DELETE FROM users WHERE id = $1"


async def change(identity: Identity, message: ChangeUser, call: Call[ProvenPlatform]) -> ActedOn:
    """Change a user's name or metadata; nothing that they sign in with."""
    outcome, named = ActedOn(message.user), message.name is not UNSET
    metadata = None if message.metadata is UNSET else metadata_text(message.metadata)
    async with operating(identity, call) as connection:
        name = message.name if named else None
        if await connection.fetchval(_CHANGE, message.user, named, name, metadata) is None:
            raise UserAbsent
        changed = {"name": named, "customMetadata": metadata is not None}
        await tell(
            connection, call, "user.changed", "user", message.user, changed=[it for it, is_ in changed.items() if is_]
        )
        await remember(connection, call, outcome)
    return outcome


async def deactivate(identity: Identity, message: DeactivateUser, call: Call[ProvenPlatform]) -> ActedOn:
    """Let a user in nowhere any more; who is deactivated already stays so since then."""
    outcome = ActedOn(message.user)
    async with operating(identity, call) as connection:
        await _hold(connection, message.user, force=message.force)
        await connection.execute(_DEACTIVATE, message.user)
        ended = await connection.fetch(_END_SESSIONS, message.user)
        await tell(connection, call, "user.deactivated", "user", message.user, sessionsEnded=len(ended))
        await remember(connection, call, outcome)
    return outcome


async def reactivate(identity: Identity, message: ReactivateUser, call: Call[ProvenPlatform]) -> ActedOn:
    """Let a user sign in again."""
    outcome = ActedOn(message.user)
    async with operating(identity, call) as connection:
        await _hold(connection, message.user, force=True)
        # A sign-in that was under way while they were deactivated may have begun one.
        await connection.execute(_END_SESSIONS, message.user)
        await connection.execute(_REACTIVATE, message.user)
        await tell(connection, call, "user.reactivated", "user", message.user)
        await remember(connection, call, outcome)
    return outcome


async def delete(identity: Identity, message: DeleteUser, call: Call[ProvenPlatform]) -> DeletedUser:
    """Delete a user with what they sign in with, their factors and memberships; never a wallet."""
    outcome, own = DeletedUser(message.user), personal(message.user)
    async with operating(identity, call) as connection:
        if (await _hold(connection, message.user, force=message.force))["deactivated_at"] is None:
            raise UserActive
        await enter(connection, own)
        if await connection.fetchval(_TENANT, own) is not None:
            raise UserHasTenant(tenantId=own)
        await enter(connection, PLATFORM)
        await connection.execute(_DELETE, message.user)
        await tell(connection, call, "user.deleted", "user", message.user)
        await remember(connection, call, outcome)
    return outcome


async def _hold(connection: Any, user: str, *, force: bool) -> Any:
    """The user's row, locked behind the tenants that they own; LastOwner where nobody else owns one, unless by force.

    Who changes members of one of them waits: of two owners not both go at once.
    """
    for tenant in await connection.fetch(_OWNED, user, personal(user)):
        await connection.execute(_BEGIN, tenant["tenant_id"])
    await enter(connection, PLATFORM)
    row = await connection.fetchrow(_LOCK, user)
    if row is None:
        raise UserAbsent
    alone = [one["tenant_id"] for one in await connection.fetch(_OWNED, user, personal(user)) if one["alone"]]
    if alone and not force:
        named = alone[:MAX_NAMED]
        said = f"This is the last owner of {', '.join(named)}: make another member owner there first, or repeat with "
        raise LastOwner(f'{said}{{"force": true}}.', tenantIds=named)
    return row
