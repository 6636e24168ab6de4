"""Members of a tenant. A changed role has another MAC, so living sessions feel it at once.

Who was removed and is added again is another member: what they held of before stays without worth.
"""

from datetime import datetime
from typing import Any

import asyncpg

from custody.kit import clock, quotas
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import LastOwner, MemberAbsent, UserAbsent
from custody.protocol.identity.tenants import Membership, PutMember, RemovedMember, RemoveMember, SavedMember
from custody.worker.acts import operating_in, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from identity.context import Identity
from identity.people import persons
from identity.people.persons import membership_mac

WRITE_SCOPE = "platform:user:write"
_HELD = "SELECT role, created_at FROM memberships WHERE tenant_id = $1 AND user_id = $2 FOR UPDATE"
# Any number that only this use case uses.
_LOCK = "SELECT pg_advisory_xact_lock(7160022, hashtext($1))"
_COUNT = "SELECT count(*) FROM memberships WHERE tenant_id = $1"
_PUT = (
    "INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (tenant_id, user_id) DO UPDATE SET role = excluded.role, mac = excluded.mac"
)
_CHANGE = "UPDATE memberships SET role = $3, mac = $4 WHERE tenant_id = $1 AND user_id = $2"
# Who was deactivated owns nothing.
_OTHER_OWNER = (
    "SELECT EXISTS (SELECT FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.tenant_id = $1 "
    "AND m.user_id <> $2 AND m.role = 'owner' AND u.deactivated_at IS NULL)"
)
_REMOVE = "DELETE FROM memberships WHERE tenant_id = $1 AND user_id = $2 RETURNING role"
_NOT_BY_SIGN_ON = "DELETE FROM sso_memberships WHERE tenant_id = $1 AND user_id = $2"
_END_SESSIONS = (
    "UPDATE sessions SET revoked_at = service_now() WHERE tenant_id = $1 AND user_id = $2 AND revoked_at IS NULL"
)


async def put(identity: Identity, message: PutMember, call: Call[ProvenPlatform]) -> SavedMember:
    """Make a user a member, or give them another role; the last owner only by force."""
    tenant, user, role = message.tenant, message.user, message.role
    async with operating_in(identity, call, tenant) as connection:
        held = await hold(connection, tenant, user)
        if held is None:
            await demand_room(connection, identity, tenant)
        before, since = held or (None, clock.now())
        if before == "owner" and role != "owner":
            await _spare_last_owner(connection, tenant, user, force=message.force)
        try:
            await write(connection, identity, tenant, user, role, since)
        except asyncpg.ForeignKeyViolationError:
            raise UserAbsent from None
        await keep_from_sign_on(connection, tenant, user)
        await persons.let_back(connection, identity, user, tenant)
        if before is None:
            await tell(connection, call, "membership.added", "user", user, role=role)
        elif before != role:
            await tell(connection, call, "membership.changed", "user", user, role=role, before=before)
        outcome = SavedMember(Membership(tenant, user, role, clock.iso(since)), before is None)
        await remember(connection, call, outcome)
    return outcome


async def remove(identity: Identity, message: RemoveMember, call: Call[ProvenPlatform]) -> RemovedMember:
    """End a membership and the sessions in it; the last owner's, whom only the operator could replace, by force."""
    tenant, user, outcome = message.tenant, message.user, RemovedMember(message.user)
    async with operating_in(identity, call, tenant) as connection:
        role = await take_out(connection, tenant, user)
        if role == "owner":
            await _spare_last_owner(connection, tenant, user, force=message.force)
        await shut_out(connection, identity, tenant, user)
        await tell(connection, call, "membership.removed", "user", user, before=role)
        await remember(connection, call, outcome)
    return outcome


async def keep_from_sign_on(connection: Any, tenant: str, user: str) -> None:
    """Let somebody's word count from now on: no group of an identity provider changes the role."""
    await connection.execute(_NOT_BY_SIGN_ON, tenant, user)


async def take_out(connection: Any, tenant: str, user: str) -> Role:
    """Delete a membership; gives the role that it was, or raises MemberAbsent."""
    role: Role | None = await connection.fetchval(_REMOVE, tenant, user)
    if role is None:
        raise MemberAbsent
    return role


async def shut_out(connection: Any, identity: Identity, tenant: str, user: str) -> None:
    """End the sessions of a person who was removed, and let no sign-on of the tenant bring them back."""
    await connection.execute(_END_SESSIONS, tenant, user)
    await persons.keep_out(connection, identity, user, tenant)


async def has_other_owner(connection: Any, tenant: str, user: str) -> bool:
    """Tell whether somebody else owns the tenant. Its row is locked: of two owners not both go at once."""
    found: bool = await connection.fetchval(_OTHER_OWNER, tenant, user)
    return found


async def demand_room(connection: Any, identity: Identity, tenant: str) -> None:
    """Raise QuotaExceeded unless one more member fits; who else makes one waits until the transaction ends.

    Not the tenant's row: a sign-on holds an address by now, and provisioning takes that row first and an address then.
    """
    await connection.execute(_LOCK, tenant)
    quotas.check("members", await connection.fetchval(_COUNT, tenant), identity.limits.of(tenant).members)


async def write(connection: Any, identity: Identity, tenant: str, user: str, role: Role, since: datetime) -> None:
    """Write a membership in the tenant that the transaction is in; `since` is kept by one that goes on."""
    mac = membership_mac(identity, tenant, user, role, since)
    await connection.execute(_PUT, tenant, user, role, mac, since)


async def hold(connection: Any, tenant: str, user: str) -> tuple[Role, datetime] | None:
    """The role of a member, and since when; nobody changes or removes them until the transaction ends."""
    row = await connection.fetchrow(_HELD, tenant, user)
    return (row["role"], row["created_at"]) if row else None


async def change(connection: Any, identity: Identity, tenant: str, user: str, role: Role, since: datetime) -> None:
    """Give a member who is held another role."""
    mac = membership_mac(identity, tenant, user, role, since)
    await connection.execute(_CHANGE, tenant, user, role, mac)


async def _spare_last_owner(connection: Any, tenant: str, user: str, *, force: bool) -> None:
    """Raise LastOwner if nobody else owns the tenant."""
    if not force and not await has_other_owner(connection, tenant, user):
        raise LastOwner
