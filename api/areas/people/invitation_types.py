"""Invitations as callers send and see them."""

from typing import Annotated

import msgspec

from custody.kit.described import described
from custody.kit.shapes import InvitedRole
from custody.people.types import EmailText
from custody.protocol.identity.invitations import Invitation, Seconds, TokenText

WEEK_SECONDS = 7 * 86_400


class NewInvitationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The invited address and its role."""

    email: Annotated[EmailText, described("The address; only a person who has proven it can accept.")]
    role: Annotated[InvitedRole, described("The role that they will have.")]
    expires_in_seconds: Annotated[Seconds, described("For how many seconds the invitation works.")] = WEEK_SECONDS
    send_email: Annotated[bool, described("True to have the service mail it; if not, pass the token on yourself.")] = (
        False
    )


class CreatedInvitation(msgspec.Struct, frozen=True, rename="camel"):
    """A new invitation with its token, returned only here."""

    invitation: Annotated[Invitation, described("The invitation.")]
    token: Annotated[str, described("The token; it is returned only here, and is in the mailed link.")]
    email_sent: Annotated[bool, described("True if it was handed to the mail server.")]

    def __repr__(self) -> str:
        return "CreatedInvitation()"


class InvitationList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of invitations, newest first."""

    invitations: Annotated[list[Invitation], described("The invitations.")]
    total: Annotated[
        int,
        described("Number of items, counted up to a thousand beyond the page; ended ones are kept for 90 days."),
    ]
    total_is_estimate: Annotated[bool, described("True if there may be more than `total`.")]
    limit: Annotated[int, described("Maximum number of items on a page.")]
    offset: Annotated[int, described("Number of items skipped.")]

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.invitations), self.total


class AcceptBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token of the invitation."""

    token: Annotated[
        TokenText | None, described("The token; needed unless `authAbuseConfig.invitations.requireToken` is false.")
    ] = None

    def __repr__(self) -> str:
        return "AcceptBody()"
