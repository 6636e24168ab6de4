"""Invitations into a tenant."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadEmailAddress
from custody.identity.roles import ANYBODY
from custody.identity.scopes import USER_WRITE
from custody.kit.described import Id, Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import InvitedRole, Role, TenantId, Uuid
from custody.protocol.command import PLATFORM_KEY, SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.refusals import TenantAbsent

LEAST_SECONDS, MOST_SECONDS = 300, 30 * 86_400
Seconds = Annotated[int, Meta(ge=LEAST_SECONDS, le=MOST_SECONDS)]
# As `custody/kit/tokens.py` makes one, after the tenant's id.
TokenText = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+\Z")]
Status = Literal["pending", "accepted", "revoked", "expired"]


class Invitation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An invitation without its token, which is returned only at creation."""

    id: Annotated[Id, described("The invitation's id.")]
    tenant_id: Annotated[str, described("The tenant.")]
    email: Annotated[str, described("The invited address.")]
    role: Annotated[InvitedRole, described("The role that it gives.")]
    status: Annotated[Status, described("State of the invitation.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    expires_at: Annotated[Instant, described("Time of expiry.")]
    accepted_by: Annotated[Id | None, described("The user who accepted it.")] = None
    ended_at: Annotated[Instant | None, described("Time when it was accepted, revoked or replaced.")] = None


class MadeInvitation(msgspec.Struct, frozen=True):
    """A new invitation, its token, which is shown only here, and the tenant's name for the mail."""

    invitation: Invitation
    token: str
    tenant_name: str

    def __repr__(self) -> str:
        return "MadeInvitation()"


class RevokedInvitation(msgspec.Struct, frozen=True):
    """The revoked invitation."""

    id: Annotated[Id, described("The invitation's id.")]
    status: Annotated[Literal["revoked"], described("Its state from now on.")] = "revoked"


class AcceptedInvitation(msgspec.Struct, frozen=True, rename="camel"):
    """The membership that an invitation gave."""

    tenant_id: Annotated[str, described("The tenant.")]
    user_id: Annotated[Id, described("The user who joined.")]
    role: Annotated[Role, described("Role in the tenant.")]
    accepted_at: Annotated[Instant, described("Time of joining.")]


class Joined(msgspec.Struct, frozen=True):
    """The person who joined, and the owners to be told of it; none at a repetition."""

    accepted: AcceptedInvitation
    email: str
    tenant_name: str
    owners: list[str]


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("invitation.created", "invitation.revoked"))
@refuses(BadEmailAddress, TenantAbsent, refusals.TooManyInvitations)
class PutInvitation(Command[MadeInvitation], frozen=True):
    """Invite an address, in place of an invitation that it has; the token is shown once."""

    tenant: TenantId
    email: Annotated[str, Meta(max_length=254)]
    role: InvitedRole
    seconds: Seconds


@command("identity", proofs=PLATFORM_KEY, scope=USER_WRITE, audit=("invitation.revoked",))
@refuses(refusals.InvitationAbsent, refusals.InvitationAccepted, TenantAbsent)
class RevokeInvitation(Command[RevokedInvitation], frozen=True):
    """Revoke a pending invitation at once."""

    tenant: TenantId
    invitation: Uuid


@command("identity", proofs=SESSION, roles=ANYBODY, audit=("invitation.accepted", "membership.added"))
@refuses(refusals.AlreadyMember, refusals.EmailMismatch, refusals.EmailUnverified, refusals.InvitationAccepted)
@refuses(refusals.InvitationExpired, refusals.InvitationInvalid, refusals.InvitationRevoked)
@refuses(refusals.InvitationTokenRequired, QuotaExceeded)
class AcceptInvitation(Command[Joined], frozen=True):
    """Join a tenant by an invitation to a proven address of the person who asks.

    Without a token the address decides, where the tenant lets it.
    """

    tenant: TenantId
    token: TokenText | None = None

    def __repr__(self) -> str:
        return f"AcceptInvitation({self.tenant})"
