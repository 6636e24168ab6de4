"""Joining a tenant by an invitation."""

from api.areas.people import invitations
from api.areas.people.invitation_types import AcceptBody
from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.invitations import AcceptedInvitation, AcceptInvitation

routes = Routes("/user/me/tenants/<joined_tenant_id>/invitations", tag="Invitations")


@routes.post("/accept", who=asking(AcceptInvitation), limit="invitations")
async def accept_invitation(
    ports: Ports, caller: SessionCaller, joined_tenant_id: str, body: AcceptBody
) -> Answered[AcceptedInvitation]:
    """Join a tenant with the token of an invitation to an address that you have proven.

    The tenant's owners are told by mail. The page `/invitation` does this for a person who opens the mailed link.
    """
    return await invitations.accept(ports, caller, joined_tenant_id, body)
