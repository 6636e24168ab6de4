"""Members of a tenant, named by its own owners and admins."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadEmailAddress
from custody.kit.shapes import InvitedRole, Role, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.invitations import MadeInvitation, RevokedInvitation, Seconds
from custody.protocol.identity.tenants import Membership, RemovedMember
from custody.protocol.refusals import AdministrationMoving


class Told(msgspec.Struct, frozen=True):
    """The people whom a change is told: who made it and whom it is about, as people know them, and the addresses.

    Empty at a repetition, so that nobody hears of it twice.
    """

    by: str = ""
    about: str = ""
    tenant_name: str = ""
    # The owners and admins who did not make it.
    others: list[str] = []
    # The person whom it is about.
    them: str | None = None

    def __repr__(self) -> str:
        return "Told()"


class ChangedMember(msgspec.Struct, frozen=True):
    """The membership now, and whom to tell."""

    membership: Membership
    told: Told


class EndedMember(msgspec.Struct, frozen=True):
    """The removed member, and whom to tell."""

    removed: RemovedMember
    told: Told


class InvitedMember(msgspec.Struct, frozen=True):
    """The new invitation, and whom to tell."""

    made: MadeInvitation
    told: Told


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("membership.changed",))
@refuses(AdministrationMoving, refusals.HigherRole, refusals.MemberAbsent, refusals.LastOwnerStays)
@refuses(refusals.TooManyAttempts)
class ChangeMember(Command[ChangedMember], frozen=True):
    """Give a member of the caller's tenant another role; their sessions follow at once."""

    user: Uuid
    role: Role


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("membership.removed",))
@refuses(AdministrationMoving, refusals.HigherRole, refusals.MemberAbsent, refusals.LastOwnerStays)
@refuses(refusals.TooManyAttempts)
class EndMembership(Command[EndedMember], frozen=True):
    """Remove a member of the caller's tenant, or leave it; their sessions no longer reach the tenant."""

    user: Uuid


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("invitation.created", "invitation.revoked"))
@refuses(AdministrationMoving, BadEmailAddress, refusals.HigherRole, refusals.TooManyInvitations)
@refuses(refusals.TooManyAttempts)
class InviteMember(Command[InvitedMember], frozen=True):
    """Invite an address to the caller's tenant, in place of an invitation that it has; the token is shown once."""

    email: Annotated[str, Meta(max_length=254)]
    role: InvitedRole
    seconds: Seconds

    def __repr__(self) -> str:
        return "InviteMember()"


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("invitation.revoked",))
@refuses(AdministrationMoving, refusals.HigherRole, refusals.InvitationAbsent, refusals.InvitationAccepted)
class WithdrawInvitation(Command[RevokedInvitation], frozen=True):
    """Revoke a pending invitation to the caller's tenant at once."""

    invitation: Uuid
