"""Invitations into a tenant: accepted once, by a person who has proven the invited address.

Everything about one tenant's invitations happens under the lock of its administration, so one address has one pending
invitation, and of two who accept at once the second finds it accepted.
"""

from datetime import timedelta
from typing import Any

import msgspec

from custody.identity.addresses import normalised_email
from custody.kit import clock, ids, tokens
from custody.kit.shapes import InvitedRole
from custody.protocol.identity.invitations import (
    AcceptedInvitation,
    AcceptInvitation,
    Invitation,
    Joined,
    MadeInvitation,
    PutInvitation,
    RevokedInvitation,
    RevokeInvitation,
)
from custody.protocol.identity.refusals import (
    AlreadyMember,
    EmailMismatch,
    EmailUnverified,
    InvitationAbsent,
    InvitationAccepted,
    InvitationExpired,
    InvitationInvalid,
    InvitationRevoked,
    InvitationTokenRequired,
    TooManyInvitations,
)
from custody.worker.acts import enter, operating_in, remember, tell
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenPlatform, ProvenSession
from custody.worker.sealing import fields
from identity.administration import config
from identity.context import Identity
from identity.people import members
from identity.people.persons import IDENTITY_MAC, let_back, membership_mac, of_row

INVITATION_MAC = "invitation-mac"
MAX_PENDING = 500
_TOLD_OWNERS = 20
_TENANT_NAME = "SELECT name FROM tenants WHERE id = $1"
_COUNT = (
    "SELECT count(*) FROM invitations WHERE tenant_id = $1 AND status = 'pending' AND expires_at > service_now() "
    "AND email <> $2"
)
_ADD = (
    "INSERT INTO invitations (tenant_id, id, token_hash, email, role, status, created_at, expires_at, mac) "
    "VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)"
)
_ROW = "SELECT *, expires_at <= service_now() AS over FROM invitations WHERE tenant_id = $1 AND "
_BY_ID = _ROW + "id = $2"
_BY_TOKEN = _ROW + "token_hash = $2"
_BY_EMAIL = _ROW + "email = ANY($2) AND status = 'pending' ORDER BY created_at DESC LIMIT 1"
_END = (
    "UPDATE invitations SET status = $3, accepted_by = $4, ended_at = $5, mac = $6 WHERE tenant_id = $1 AND id = $2 "
    "AND status = 'pending'"
)
# What takes an address from the person waits for this, and this for that.
_HOLD = "SELECT id FROM users WHERE id = $1 FOR KEY SHARE"
_ADDRESSES = (
    "SELECT kind, subject, user_id, tenant_id, verified, blocked_at, mac FROM identities "
    "WHERE user_id = $1 AND kind = 'email' AND tenant_id IS NULL"
)
_STANDS = "SELECT demand_credential($1, $2)"
_BEGIN = "SELECT begin_administration($1, NULL)"
_IS_MEMBER = "SELECT EXISTS (SELECT FROM memberships WHERE tenant_id = $1 AND user_id = $2)"
_JOIN = "INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) VALUES ($1, $2, $3, $4, $5)"
_OWNERS = (
    "SELECT DISTINCT i.subject FROM memberships m JOIN users u ON u.id = m.user_id AND u.deactivated_at IS NULL "
    "JOIN identities i ON i.user_id = m.user_id AND i.kind = 'email' AND i.tenant_id IS NULL AND i.verified "
    "WHERE m.tenant_id = $1 AND m.role = 'owner' AND m.user_id <> $2 ORDER BY i.subject LIMIT $3"
)


async def put(identity: Identity, message: PutInvitation, call: Call[ProvenPlatform]) -> MadeInvitation:
    """Invite an address; an invitation that it has already works no more."""
    asked = Asked(message.tenant, message.email, message.role, message.seconds)
    async with operating_in(identity, call, message.tenant) as connection:
        made = await write(connection, identity, call, asked)
        await remember(connection, call, None)
    return made


async def revoke(identity: Identity, message: RevokeInvitation, call: Call[ProvenPlatform]) -> RevokedInvitation:
    """End a pending invitation, also one whose time is up."""
    async with operating_in(identity, call, message.tenant) as connection:
        row = await hold_pending(connection, identity, message.tenant, message.invitation)
        outcome = await end_pending(connection, identity, call, row)
        await remember(connection, call, outcome)
    return outcome


class Asked(msgspec.Struct, frozen=True):
    """An invitation as it is asked for."""

    tenant: str
    email: str
    role: InvitedRole
    seconds: int


async def write(connection: Any, identity: Identity, call: Call[Any], asked: Asked) -> MadeInvitation:
    """Write an invitation into the tenant that the transaction is in, alone in its administration."""
    tenant, email, now = asked.tenant, normalised_email(asked.email), clock.now()
    # The page at the other end of the link has to know the tenant.
    token, invitation = f"{tenant}/{tokens.new_api_key('inv')}", ids.new_uuid()
    row = {
        "tenant_id": tenant,
        "id": invitation,
        "token_hash": tokens.digest(token),
        "email": email,
        "role": asked.role,
        "status": "pending",
        "accepted_by": None,
        "ended_at": None,
        "created_at": now,
        "expires_at": now + timedelta(seconds=asked.seconds),
        "over": False,
    }
    name = await connection.fetchval(_TENANT_NAME, tenant)
    if await connection.fetchval(_COUNT, tenant, email) >= MAX_PENDING:
        raise TooManyInvitations
    before = await find_pending(connection, identity, tenant, email)
    if before is not None:
        await _end(connection, identity, before, "expired" if before["over"] else "revoked")
        await tell(connection, call, "invitation.revoked", "invitation", str(before["id"]), replacedBy=invitation)
    mac = identity.sealer.mac(INVITATION_MAC, tenant, content_of(row))
    await connection.execute(
        _ADD, tenant, invitation, row["token_hash"], email, asked.role, now, row["expires_at"], mac
    )
    await tell(connection, call, "invitation.created", "invitation", invitation, email=email, role=asked.role)
    return MadeInvitation(to_public(row), token, name)


async def find_pending(connection: Any, identity: Identity, tenant: str, email: str) -> Any:
    """The row of the invitation that an address has, of which the time may be up (`over`); None where it has none."""
    row = await connection.fetchrow(_BY_EMAIL, tenant, [email])
    if row is not None:
        _check(identity, row)
    return row


async def hold_pending(connection: Any, identity: Identity, tenant: str, invitation: str) -> Any:
    """The row of an invitation that nobody has accepted or revoked; raises InvitationAbsent, InvitationAccepted."""
    row = await connection.fetchrow(_BY_ID, tenant, invitation)
    if row is None:
        raise InvitationAbsent
    _check(identity, row)
    if row["status"] == "accepted":
        raise InvitationAccepted
    if row["status"] != "pending":
        raise InvitationAbsent
    return row


async def end_pending(connection: Any, identity: Identity, call: Call[Any], row: Any) -> RevokedInvitation:
    """Revoke one that is pending."""
    invitation = str(row["id"])
    await _end(connection, identity, row, "revoked")
    await tell(connection, call, "invitation.revoked", "invitation", invitation)
    return RevokedInvitation(invitation)


async def accept(identity: Identity, message: AcceptInvitation, call: Call[ProvenSession]) -> Joined:
    """Join the tenant; the role is the invitation's. Who is a member already stays what they are."""
    tenant, user, now = message.tenant, call.caller.user, clock.now()
    async with identity.pool.acquire() as connection, connection.transaction():
        await enter(connection, call.caller.tenant)
        await connection.execute(_STANDS, call.caller.tenant, call.caller.standing)
        await connection.execute(_BEGIN, tenant)
        await connection.execute(_HOLD, user)
        addresses = await _addresses(connection, identity, user)
        row = await _find(connection, identity, message, addresses)
        _demand_open(row)
        if await connection.fetchval(_IS_MEMBER, tenant, user):
            raise AlreadyMember
        await members.demand_room(connection, identity, tenant)
        mac = membership_mac(identity, tenant, user, row["role"], now)
        await connection.execute(_JOIN, tenant, user, row["role"], mac, now)
        await _end(connection, identity, row, "accepted", user)
        await let_back(connection, identity, user, tenant)
        invitation = str(row["id"])
        await tell(connection, call, "invitation.accepted", "invitation", invitation, role=row["role"])
        await tell(connection, call, "membership.added", "user", user, role=row["role"], invitationId=invitation)
        name = await connection.fetchval(_TENANT_NAME, tenant)
        owners = [one["subject"] for one in await connection.fetch(_OWNERS, tenant, user, _TOLD_OWNERS)]
        accepted = AcceptedInvitation(tenant, user, row["role"], clock.iso(now))
        joined = Joined(accepted, row["email"], name, owners)
        await remember(connection, call, msgspec.structs.replace(joined, owners=[]))
    return joined


def content_of(row: Any) -> bytes:
    """Build what the MAC is of: whom it lets in, as what, until when, and what became of it."""
    return fields(
        row["tenant_id"],
        str(row["id"]),
        row["token_hash"],
        row["email"],
        row["role"],
        row["status"],
        str(row["accepted_by"] or ""),
        clock.unix_microseconds(row["expires_at"]),
    )


def to_public(row: Any) -> Invitation:
    """An invitation as answers have it."""
    return Invitation(
        id=str(row["id"]),
        tenant_id=row["tenant_id"],
        email=row["email"],
        role=row["role"],
        status=row["status"],
        created_at=clock.iso(row["created_at"]),
        expires_at=clock.iso(row["expires_at"]),
    )


async def _find(connection: Any, identity: Identity, message: AcceptInvitation, addresses: dict[str, bool]) -> Any:
    """The invitation that the person means, which is for a proven address of theirs."""
    if message.token is None:
        judging = await config.judging_of(connection, identity, message.tenant)
        if judging.invitations.require_token:
            raise InvitationTokenRequired(fields=["token"])
        proven = [address for address, verified in addresses.items() if verified]
        row = await connection.fetchrow(_BY_EMAIL, message.tenant, proven)
    else:
        row = await connection.fetchrow(_BY_TOKEN, message.tenant, tokens.digest(message.token))
    if row is None:
        raise InvitationInvalid
    _check(identity, row)
    if not addresses.get(row["email"], False):
        raise EmailMismatch if any(addresses.values()) and row["email"] not in addresses else EmailUnverified
    return row


async def _addresses(connection: Any, identity: Identity, user: str) -> dict[str, bool]:
    """The person's own addresses, and whether each is proven; none that a tenant's sign-on brought."""
    found = {}
    for row in await connection.fetch(_ADDRESSES, user):
        one = of_row(row)
        identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, one.content)
        found[one.subject] = one.verified
    return found


def _demand_open(row: Any) -> None:
    if row["status"] == "accepted":
        raise InvitationAccepted
    if row["status"] == "revoked":
        raise InvitationRevoked
    if row["status"] == "expired" or row["over"]:
        raise InvitationExpired


def _check(identity: Identity, row: Any) -> None:
    """Tampered unless identity wrote the row."""
    identity.sealer.check_mac(row["mac"], INVITATION_MAC, row["tenant_id"], content_of(row))


async def _end(connection: Any, identity: Identity, row: Any, status: str, by: str | None = None) -> None:
    _check(identity, row)
    ended = dict(row) | {"status": status, "accepted_by": by}
    mac = identity.sealer.mac(INVITATION_MAC, row["tenant_id"], content_of(ended))
    await connection.execute(_END, row["tenant_id"], row["id"], status, by, clock.now(), mac)
