"""Invitations: made and mailed for the operator, accepted by people."""

from api.areas.notifications import letters
from api.areas.people.invitation_types import AcceptBody, CreatedInvitation, NewInvitationBody
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller, SessionCaller
from custody.people.types import EmailNotConfigured
from custody.ports import Ports
from custody.protocol.identity.invitations import AcceptedInvitation, AcceptInvitation, MadeInvitation, PutInvitation


async def invite(
    ports: Ports, caller: PlatformCaller, tenant: str, body: NewInvitationBody
) -> Answered[CreatedInvitation]:
    """Make an invitation and mail it, if that is asked for; without a mail server nothing is made then."""
    if body.send_email and ports.mail is None:
        raise EmailNotConfigured
    answered = await ports.workers.ask(PutInvitation(tenant, body.email, body.role, body.expires_in_seconds), caller)
    return answered.to(lambda made: CreatedInvitation(made.invitation, made.token, mail_invitation(ports, body, made)))


async def accept(ports: Ports, caller: SessionCaller, tenant: str, body: AcceptBody) -> Answered[AcceptedInvitation]:
    """Join a tenant; its owners are told by mail."""
    answered = await ports.workers.ask(AcceptInvitation(tenant, body.token), caller)
    joined = answered.answer
    if ports.mail is not None and not answered.replayed:
        letter = letters.acceptance(
            ports.mail.public_url,
            tenant=tenant,
            name=joined.tenant_name,
            email=joined.email,
            role=joined.accepted.role,
        )
        for owner in joined.owners:
            ports.mail.send(owner, letter)
    return answered.to(lambda answer: answer.accepted)


def mail_invitation(ports: Ports, body: NewInvitationBody, made: MadeInvitation, *, by: str | None = None) -> bool:
    """Mail an invitation, if that is asked for and can be; tells whether it was.

    `by`: the person who invites; None is the operator.
    """
    if ports.mail is None or not body.send_email:
        return False
    invitation = made.invitation
    letter = letters.invitation(
        ports.mail.public_url,
        tenant=invitation.tenant_id,
        name=made.tenant_name,
        role=invitation.role,
        token=made.token,
        until=invitation.expires_at,
        by=by,
    )
    ports.mail.send(invitation.email, letter)
    return True
