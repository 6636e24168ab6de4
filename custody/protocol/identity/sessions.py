"""Sessions, once they have begun."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.roles import ANYBODY
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Role, TenantId, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    """A person."""

    id: Annotated[Id, described("The person's id.")]
    email: Annotated[str | None, described("The address that they sign in with, else the one that a provider shows.")]
    wallet_address: Annotated[str | None, described("The wallet that they signed in with.")]
    email_verified: Annotated[
        bool | None,
        described("True if the address was proven here; false if a provider supplied it, null without one."),
    ] = None


class SessionTenant(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tenant of a session; `api_key` only in the response to the sign-in that created the tenant."""

    id: Annotated[str, described("The tenant's id.")]
    name: Annotated[str, described("The tenant's name.")]
    role: Annotated[Role, described("The person's role in it.")]
    api_key: Annotated[str | None, described("The tenant's API key, only in the answer that created the tenant.")] = (
        None
    )

    def __repr__(self) -> str:
        return f"SessionTenant({self.id})"


class Mfa(msgspec.Struct, frozen=True, rename="camel"):
    """The last verification of a second factor in this session, and the person's factors."""

    verified_at: Annotated[Instant | None, described("Time of this session's last verification of a second factor.")]
    methods: Annotated[list[str], described("The factors that the person has.")]


class SignedIn(msgspec.Struct, frozen=True, rename="camel"):
    """A session: an access token for `expires_in` seconds, and a refresh token that works once."""

    token: Annotated[str, described("The access token, for `Authorization: Bearer`.")]
    refresh_token: Annotated[str, described("Gets the next tokens; it works once.")]
    expires_in: Annotated[int, described("Seconds until the access token expires.")]
    user: Annotated[Profile, described("The signed-in person.")]
    tenant: Annotated[SessionTenant, described("The tenant of the session.")]
    mfa: Annotated[Mfa, described("The state of the second factor.")]
    provider: Annotated[str, described("Sign-in method of the person.")]

    def __repr__(self) -> str:
        return "SignedIn()"


class EndedSession(msgspec.Struct, frozen=True):
    """The session that ended."""

    deleted: Annotated[str, described("The id of the session that ended.")]


@command("identity", audit=("session.reuse_detected",))
@refuses(refusals.NotAMember, refusals.RefreshTokenInvalid, refusals.RefreshTokenReused, refusals.SsoRequired)
class RefreshSession(Command[SignedIn], frozen=True):
    """Exchange a refresh token, which this uses up, for the next tokens."""

    refresh_token: Annotated[str, Meta(max_length=512)]

    def __repr__(self) -> str:
        return "RefreshSession()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, pages=True, audit=("session.ended",))
@refuses(refusals.SessionAbsent)
class EndSession(Command[EndedSession], frozen=True):
    """Revoke one of the person's own sessions; None: this one, the only one that a page's session may end."""

    session: Uuid | None = None


@command("identity", proofs=SESSION, roles=ANYBODY, audit=("session.switched",))
@refuses(refusals.NotAMember, refusals.SsoRequired)
class SwitchTenant(Command[SignedIn], frozen=True):
    """Go on in another tenant that the person is a member of."""

    tenant: TenantId
