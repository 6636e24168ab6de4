"""People as answers show them, and what they send."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.addresses import EMAIL_PATTERN
from custody.kit.described import Id, Instant, described
from custody.kit.errors import Unavailable
from custody.kit.shapes import ClientId, Role, TenantId
from custody.protocol.identity.sessions import Mfa, Profile, SessionTenant

# Loose on purpose: what is wrong with an address or a message is said by the signer in a sentence.
EmailText = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=254,
        examples=["name@example.com"],
        extra_json_schema={"format": "email", "pattern": EMAIL_PATTERN},
    ),
]
CodeText = Annotated[str, Meta(min_length=1, max_length=64)]
RefreshText = Annotated[str, Meta(min_length=1, max_length=512)]


class EmailNotConfigured(Unavailable):
    """This deployment cannot send e-mail; the operator must set SERVICE_SMTP_URL."""


class SmsNotConfigured(Unavailable):
    """This deployment cannot send text messages; the operator must set SERVICE_SMS_URL."""


AtAppClient = Annotated[
    ClientId | None,
    described(
        "The app client of `tenantId` for which the person signs in at this service's own page (`/sign-in`); where it "
        "registers people (`allowRegistration`), they become a member."
    ),
]


class WalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EIP-4361 message, exactly as it was signed, and the signature (0x and hex)."""

    message: Annotated[
        str, Meta(min_length=1, max_length=8192), described("The EIP-4361 message, exactly as it was signed.")
    ]
    signature: Annotated[
        str,
        Meta(min_length=4, max_length=16_384, pattern=r"^0x([0-9a-fA-F]{2})*\Z"),
        described("The signature in hex."),
    ]
    tenant_id: Annotated[TenantId | None, described("The tenant to sign in to; without it the person's own.")] = None
    client_id: Annotated[
        ClientId | None,
        described("The app client of that tenant at whose page the message was signed; `tenantId` is needed with it."),
    ] = None
    app_client_id: AtAppClient = None

    def __repr__(self) -> str:
        return "WalletBody()"


class PageHeaders(msgspec.Struct, frozen=True, rename="pascal"):
    """The headers in which a browser says where a request comes from."""

    origin: Annotated[
        str, Meta(max_length=512), described("The page's origin; with `clientId` it is that of the message.")
    ] = ""


class EmailBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address that a code is sent to."""

    email: Annotated[EmailText, described("The address to send a code to.")]


class EmailCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The code that was sent."""

    email: Annotated[EmailText, described("The address that the code was sent to.")]
    code: Annotated[CodeText, described("The code.")]
    tenant_id: Annotated[TenantId | None, described("The tenant to sign in to; without it the person's own.")] = None
    app_client_id: AtAppClient = None

    def __repr__(self) -> str:
        return "EmailCodeBody()"


class RefreshBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The refresh token, which this uses up."""

    refresh_token: Annotated[RefreshText, described("The refresh token; it works once.")]

    def __repr__(self) -> str:
        return "RefreshBody()"


class TenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Another tenant of the person."""

    tenant_id: Annotated[TenantId, described("The tenant to switch to.")]


class CodeSent(msgspec.Struct, frozen=True, rename="camel"):
    """The same response for every address."""

    expires_at: Annotated[Instant, described("Until when the code is valid.")]


class OwnMembership(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant and the person's role in it."""

    tenant_id: Annotated[str, described("The tenant.")]
    name: Annotated[str, described("The tenant's name.")]
    role: Annotated[Role, described("The person's role in it.")]


class CurrentSession(msgspec.Struct, frozen=True, rename="camel"):
    """This session."""

    id: Annotated[Id, described("The session's id.")]
    user: Annotated[Profile, described("The signed-in person.")]
    tenant: Annotated[SessionTenant, described("The tenant of the session.")]
    mfa: Annotated[Mfa, described("The state of the second factor.")]
    memberships: Annotated[list[OwnMembership], described("Every tenant of the person.")]


class OwnSession(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One of the person's own sessions."""

    id: Annotated[Id, described("The session's id.")]
    current: Annotated[bool, described("True for this session.")]
    tenant_id: Annotated[str, described("The tenant of the session.")]
    provider: Annotated[str, described("Sign-in method of the person.")]
    amr: Annotated[list[str], described("Verified methods (RFC 8176).")]
    mfa_verified_at: Annotated[Instant | None, described("Time of its last verification of a second factor.")]
    created_at: Annotated[Instant, described("Time of its start.")]
    last_used_at: Annotated[Instant, described("Time of the last use.")]
    expires_at: Annotated[Instant, described("Time of its end.")]
    ip_address: Annotated[str | None, described("The address that the request came from.")]
    user_agent: Annotated[str | None, described("User agent that the client sent.")]
