"""People as answers show them, and what they send. Decisions 5."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.errors import Unavailable
from custody.kit.shapes import Role, TenantId

# Loose on purpose: what is wrong with an address or a message is said by the signer in a sentence.
EmailText = Annotated[str, Meta(min_length=3, max_length=254)]
CodeText = Annotated[str, Meta(min_length=1, max_length=64)]
RefreshText = Annotated[str, Meta(min_length=1, max_length=512)]


class EmailNotConfigured(Unavailable):
    """This deployment sends no e-mail; its operator has to set SERVICE_SMTP_URL."""


class SmsNotConfigured(Unavailable):
    """This deployment sends no text messages; its operator has to set SERVICE_SMS_URL."""


class WalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EIP-4361 message, exactly as it was signed, and the signature (0x and hex)."""

    message: Annotated[str, Meta(min_length=1, max_length=8192)]
    signature: Annotated[str, Meta(min_length=4, max_length=16_384, pattern=r"^0x([0-9a-fA-F]{2})*\Z")]
    tenant_id: TenantId | None = None

    def __repr__(self) -> str:
        return "WalletBody()"


class EmailBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to send a code."""

    email: EmailText


class EmailCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The code that was sent."""

    email: EmailText
    code: CodeText
    tenant_id: TenantId | None = None

    def __repr__(self) -> str:
        return "EmailCodeBody()"


class RefreshBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The refresh token, which this uses up."""

    refresh_token: RefreshText

    def __repr__(self) -> str:
        return "RefreshBody()"


class TenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Another tenant of one's own."""

    tenant_id: TenantId


class Nonce(msgspec.Struct, frozen=True, rename="camel"):
    """A nonce for one message."""

    nonce: str
    expires_at: str

    def __repr__(self) -> str:
        return "Nonce()"


class CodeSent(msgspec.Struct, frozen=True, rename="camel"):
    """The same answer for every address."""

    expires_at: str


class Profile(msgspec.Struct, frozen=True, rename="camel"):
    """A person."""

    id: str
    email: str | None
    wallet_address: str | None


class SessionTenant(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tenant of a session; `api_key` this once, when the tenant was made by signing in."""

    id: str
    name: str
    role: Role
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"SessionTenant({self.id})"


class Mfa(msgspec.Struct, frozen=True, rename="camel"):
    """When a second factor was last shown in this session, and which the person has."""

    verified_at: str | None
    methods: list[str]


class SignedIn(msgspec.Struct, frozen=True, rename="camel"):
    """A session: an access token for `expires_in` seconds, and a refresh token that works once."""

    token: str
    refresh_token: str
    expires_in: int
    user: Profile
    tenant: SessionTenant
    mfa: Mfa
    provider: str

    def __repr__(self) -> str:
        return "SignedIn()"


class OwnMembership(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant and what the person is there."""

    tenant_id: str
    name: str
    role: Role


class CurrentSession(msgspec.Struct, frozen=True, rename="camel"):
    """This session."""

    id: str
    user: Profile
    tenant: SessionTenant
    mfa: Mfa
    memberships: list[OwnMembership]


class OwnSession(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One of the person's own sessions."""

    id: str
    current: bool
    tenant_id: str
    provider: str
    amr: list[str]
    mfa_verified_at: str | None
    created_at: str
    last_used_at: str
    expires_at: str
    ip_address: str | None
    user_agent: str | None


class EndedSession(msgspec.Struct, frozen=True):
    """What has ended."""

    deleted: str
