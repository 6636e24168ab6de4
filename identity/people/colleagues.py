"""The people of a tenant, as its own owners and admins name them. An owner gives and takes every role, an admin those
below their own; a tenant keeps an owner.

What is written is what the operator's acts write, under the same lock: `members.py`, `invitations.py`.
"""

from typing import Any, Final

import msgspec

from custody.identity.addresses import normalised_email
from custody.kit import clock
from custody.kit.shapes import Role
from custody.protocol.identity.invitations import RevokedInvitation
from custody.protocol.identity.members import (
    ChangedMember,
    ChangeMember,
    EndedMember,
    EndMembership,
    InvitedMember,
    InviteMember,
    Told,
    WithdrawInvitation,
)
from custody.protocol.identity.refusals import HigherRole, LastOwnerStays, MemberAbsent
from custody.protocol.identity.tenants import Membership, RemovedMember
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import attempts, invitations, members

# The roles that only an owner gives and takes.
HIGHER: Final = frozenset({"owner", "admin"})
MOST_TOLD: Final = 20
# Each is mailed, so they are counted: for the person who makes them, and invitations for the address, in any tenant.
CHANGES_PER_HOUR, INVITATIONS_PER_HOUR, HOUR = 120, 5, 3600
_NAME = "SELECT name FROM tenants WHERE id = $1"
_SHOWN = "SELECT COALESCE(email, wallet, id::text) FROM user_profile($1)"
# Only an address that was proven here, and is the person's own, is written to.
_PROVEN = (
    "FROM memberships m JOIN users u ON u.id = m.user_id AND u.deactivated_at IS NULL "
    "JOIN identities i ON i.user_id = m.user_id AND i.kind = 'email' AND i.tenant_id IS NULL AND i.verified "
    "WHERE m.tenant_id = $1 "
)
_OTHERS = (
    f"SELECT DISTINCT i.subject {_PROVEN} AND m.role IN ('owner', 'admin') AND m.user_id <> $2 "  # noqa: S608
    "AND m.user_id IS DISTINCT FROM $3::uuid ORDER BY i.subject LIMIT $4"
)
_THEM = f"SELECT min(i.subject) {_PROVEN} AND m.user_id = $2"


async def change(identity: Identity, message: ChangeMember, call: Call[ProvenSession]) -> ChangedMember:
    """Give a member another role; the same one again changes nothing, and is told to nobody."""
    tenant, user, role = call.caller.tenant, message.user, message.role
    await _count(identity, call)
    async with acting(identity, call) as connection:
        held = await members.hold(connection, tenant, user)
        if held is None:
            raise MemberAbsent
        before, since = held
        _demand_higher(call, user, before, role)
        told = Told()
        if before != role:
            if before == "owner":
                await _keep_an_owner(connection, tenant, user)
            await members.change(connection, identity, tenant, user, role, since)
            await members.keep_from_sign_on(connection, tenant, user)
            await tell(connection, call, "membership.changed", "user", user, role=role, before=before)
            told = await _find_readers(connection, call, user)
        outcome = ChangedMember(Membership(tenant, user, role, clock.iso(since)), told)
        await remember(connection, call, msgspec.structs.replace(outcome, told=Told()))
    return outcome


async def end(identity: Identity, message: EndMembership, call: Call[ProvenSession]) -> EndedMember:
    """Remove a member, or leave; sessions in the tenant end, and no sign-on of the tenant brings them back."""
    tenant, user = call.caller.tenant, message.user
    await _count(identity, call)
    async with acting(identity, call) as connection:
        held = await members.hold(connection, tenant, user)
        if held is None:
            raise MemberAbsent
        _demand_higher(call, user, held[0])
        if held[0] == "owner":
            await _keep_an_owner(connection, tenant, user)
        told = await _find_readers(connection, call, user)
        await members.take_out(connection, tenant, user)
        await members.shut_out(connection, identity, tenant, user)
        await tell(connection, call, "membership.removed", "user", user, before=held[0])
        outcome = EndedMember(RemovedMember(user), told)
        await remember(connection, call, msgspec.structs.replace(outcome, told=Told()))
    return outcome


async def invite(identity: Identity, message: InviteMember, call: Call[ProvenSession]) -> InvitedMember:
    """Invite an address; an invitation that it has already works no more."""
    asked = invitations.Asked(call.caller.tenant, normalised_email(message.email), message.role, message.seconds)
    await _count(identity, call)
    await attempts.count(identity, f"invited:{asked.email}", INVITATIONS_PER_HOUR, HOUR)
    async with acting(identity, call) as connection:
        # What it replaces works no more, so that is taken from somebody too.
        before = await invitations.find_pending(connection, identity, asked.tenant, asked.email)
        _demand_higher(
            call, None, message.role, *([before["role"]] if before is not None and not before["over"] else [])
        )
        made = await invitations.write(connection, identity, call, asked)
        told = await _find_readers(connection, call, None)
        await remember(connection, call, None)
    return InvitedMember(made, msgspec.structs.replace(told, about=made.invitation.email))


async def withdraw(identity: Identity, message: WithdrawInvitation, call: Call[ProvenSession]) -> RevokedInvitation:
    """End a pending invitation, also one whose time is up."""
    async with acting(identity, call) as connection:
        row = await invitations.hold_pending(connection, identity, call.caller.tenant, message.invitation)
        _demand_higher(call, None, row["role"])
        outcome = await invitations.end_pending(connection, identity, call, row)
        await remember(connection, call, outcome)
    return outcome


async def _count(identity: Identity, call: Call[ProvenSession]) -> None:
    await attempts.count(identity, f"colleagues:{call.caller.user}", CHANGES_PER_HOUR, HOUR)


def _demand_higher(call: Call[ProvenSession], user: str | None, *roles: Role) -> None:
    """Raise HigherRole unless the caller may give and take these roles; their own they may lay down."""
    if call.caller.role == "owner":
        return
    # The first is what the person is.
    given = roles[1:] if user == call.caller.user else roles
    if HIGHER.intersection(given):
        raise HigherRole


async def _keep_an_owner(connection: Any, tenant: str, user: str) -> None:
    if not await members.has_other_owner(connection, tenant, user):
        raise LastOwnerStays


async def _find_readers(connection: Any, call: Call[ProvenSession], about: str | None) -> Told:
    """Find whom a change is told; before the person whom it is about is gone."""
    tenant, by = call.caller.tenant, call.caller.user
    rows = await connection.fetch(_OTHERS, tenant, by, about, MOST_TOLD)
    is_self = about is None or about == by
    return Told(
        by=await connection.fetchval(_SHOWN, by),
        about="" if about is None else await connection.fetchval(_SHOWN, about),
        tenant_name=await connection.fetchval(_NAME, tenant),
        others=[row["subject"] for row in rows],
        them=None if is_self else await connection.fetchval(_THEM, tenant, about),
    )
