"""The people of a tenant, as its own owners and admins name them."""

from api.areas.people import colleagues as use_cases
from api.areas.people import invitation_store
from api.areas.people.invitation_types import CreatedInvitation, InvitationList, NewInvitationBody
from api.areas.tenants import store
from api.http.endpoint import Routes
from api.http.who import admin, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.people.types import EmailNotConfigured
from custody.ports import Ports
from custody.protocol.identity.invitations import RevokedInvitation
from custody.protocol.identity.members import ChangeMember, EndMembership, InviteMember, WithdrawInvitation
from custody.protocol.identity.tenants import Membership, RemovedMember
from custody.tenants.types import Member, RoleBody

members = Routes("/tenants/<tenant_id>/members", tag="Members")
invitations = Routes("/tenants/<tenant_id>/invitations", tag="Invitations")


@members.get("", who=admin)
async def list_own_members(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Listed[Member]:
    """List the tenant's members, newest first."""
    return await store.members(ports.pool, caller.tenant, query)


@members.patch("/<user_id>", who=asking(ChangeMember))
async def change_own_member(
    ports: Ports, caller: SessionCaller, tenant_id: str, user_id: str, body: RoleBody
) -> Answered[Membership]:
    """Change a member's role; existing sessions follow at once.

    An owner gives and takes every role, an admin those below their own. The last owner's role stays. The other owners
    and admins, and the member, are told by mail.
    """
    return await use_cases.change(ports, caller, user_id, body)


@members.delete("/<user_id>", who=asking(EndMembership))
async def remove_own_member(
    ports: Ports, caller: SessionCaller, tenant_id: str, user_id: str
) -> Answered[RemovedMember]:
    """Remove a member, or leave by naming yourself; their sessions lose access to the tenant at once.

    An owner removes everybody, an admin those below their own role. The last owner cannot leave. The other owners and
    admins, and the person, are told by mail.
    """
    return await use_cases.end(ports, caller, user_id)


@invitations.get("", who=admin)
async def list_own_invitations(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> InvitationList:
    """List the tenant's invitations without their tokens, newest first."""
    return await invitation_store.page(ports.pool, caller.tenant, query)


@invitations.post(
    "", who=asking(InviteMember), status=201, fails=(EmailNotConfigured,), private=True, shows_secret=True
)
async def invite_colleague(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: NewInvitationBody
) -> Answered[CreatedInvitation]:
    """Invite an address to the tenant; the token is returned only in this response.

    Only an owner invites an admin, and nobody an owner. A second invitation of an address replaces the first, whose
    token then works no more. At most 500 are pending. The other owners and admins are told by mail.
    """
    return await use_cases.invite(ports, caller, body)


@invitations.delete("/<invitation_id>", who=asking(WithdrawInvitation))
async def withdraw_invitation(
    ports: Ports, caller: SessionCaller, tenant_id: str, invitation_id: str
) -> Answered[RevokedInvitation]:
    """Revoke a pending invitation at once."""
    return await ports.workers.ask(WithdrawInvitation(invitation_id), caller)
