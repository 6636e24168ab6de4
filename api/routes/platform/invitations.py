"""Invitations into a tenant, made by the operator."""

from api.areas.people import invitation_store, invitations
from api.areas.people.invitation_types import CreatedInvitation, InvitationList, NewInvitationBody
from api.http.endpoint import Routes
from api.http.who import asking, platform
from custody.identity.scopes import TENANT_USER_READ
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.kit.paging import Page
from custody.people.types import EmailNotConfigured
from custody.ports import Ports
from custody.protocol.identity.invitations import PutInvitation, RevokedInvitation, RevokeInvitation
from custody.protocol.refusals import TenantAbsent

routes = Routes("/platform/tenants/<tenant_id>/invitations", tag="Invitations")


@routes.get("", who=platform(TENANT_USER_READ), fails=(TenantAbsent,))
async def list_invitations(ports: Ports, tenant_id: str, query: Page) -> InvitationList:
    """List a tenant's invitations without their tokens, newest first."""
    return await invitation_store.page(ports.pool, tenant_id, query)


@routes.post("", who=asking(PutInvitation), status=201, fails=(EmailNotConfigured,), private=True, shows_secret=True)
async def create_invitation(
    ports: Ports, caller: PlatformCaller, tenant_id: str, body: NewInvitationBody
) -> Answered[CreatedInvitation]:
    """Invite an address to a tenant; the token is returned only in this response.

    A second invitation of an address replaces the first, whose token then works no more. At most 500 are pending.
    """
    return await invitations.invite(ports, caller, tenant_id, body)


@routes.delete("/<invitation_id>", who=asking(RevokeInvitation))
async def revoke_invitation(
    ports: Ports, caller: PlatformCaller, tenant_id: str, invitation_id: str
) -> Answered[RevokedInvitation]:
    """Revoke a pending invitation at once."""
    return await ports.workers.ask(RevokeInvitation(tenant_id, invitation_id), caller)
