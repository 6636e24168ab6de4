"""The people of a tenant, as its own owners and admins name them: who is told of a change."""

from api.areas.notifications import letters
from api.areas.people.invitation_types import CreatedInvitation, NewInvitationBody
from api.areas.people.invitations import mail_invitation
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.notifications.mail import Letter
from custody.people.types import EmailNotConfigured
from custody.ports import Ports
from custody.protocol.identity.members import ChangeMember, EndMembership, InviteMember, Told
from custody.protocol.identity.tenants import Membership, RemovedMember
from custody.tenants.types import RoleBody


async def change(ports: Ports, caller: SessionCaller, user: str, body: RoleBody) -> Answered[Membership]:
    """Give a member another role, and tell the others and the member."""
    answered = await ports.workers.ask(ChangeMember(user, body.role), caller)
    told = answered.answer.told
    _tell(ports, caller, told, f"{told.by} gave {told.about} the role {body.role}.")
    return answered.to(lambda changed: changed.membership)


async def end(ports: Ports, caller: SessionCaller, user: str) -> Answered[RemovedMember]:
    """Remove a member or leave, and tell the others and the person."""
    answered = await ports.workers.ask(EndMembership(user), caller)
    told = answered.answer.told
    is_self = user == caller.user
    _tell(ports, caller, told, f"{told.by} left." if is_self else f"{told.by} removed {told.about}.")
    return answered.to(lambda ended: ended.removed)


async def invite(ports: Ports, caller: SessionCaller, body: NewInvitationBody) -> Answered[CreatedInvitation]:
    """Make an invitation and mail it, if that is asked for; tell the others."""
    if body.send_email and ports.mail is None:
        raise EmailNotConfigured
    answered = await ports.workers.ask(InviteMember(body.email, body.role, body.expires_in_seconds), caller)
    invited = answered.answer
    told = invited.told
    _tell(ports, caller, told, f"{told.by} invited {told.about}, as {body.role}.")
    sent = mail_invitation(ports, body, invited.made, by=told.by)
    return answered.to(lambda found: CreatedInvitation(found.made.invitation, found.made.token, sent))


def _tell(ports: Ports, caller: SessionCaller, told: Told, sentence: str) -> None:
    if ports.mail is None:
        return
    letter: Letter = letters.membership(ports.mail.public_url, caller.tenant, told.tenant_name, sentence)
    for address in (*told.others, *((told.them,) if told.them else ())):
        ports.mail.send(address, letter)
