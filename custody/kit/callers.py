"""The caller. A caller is proven at the edge of the api and again, from the same credential, by the signer."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.shapes import Role, Uuid


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The raw credential that a caller showed; the signer derives tenant and agent from it, never from the api."""

    kind: Literal["agent", "tenant_key", "platform_key", "session", "app_client"]
    value: str

    def __repr__(self) -> str:
        return f"Proof({self.kind})"


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of a request, for the audit trail; the api's word."""

    request_id: str
    ip: str | None = None
    user_agent: str | None = None


class IdempotencyKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request's `Idempotency-Key`, hashed, with the route it was sent to and a fingerprint of what it said."""

    route: str
    key_hash: bytes
    fingerprint: bytes


class ShownSigner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proof shown for one signer of an agent: a signature, as in its header, or the credential itself."""

    signer: Uuid
    signature: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    secret: Annotated[str, Meta(min_length=1, max_length=256)] | None = None

    def __repr__(self) -> str:
        return f"ShownSigner({self.signer})"


class Authorization(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Others who agreed to a request, and the request as it was signed: the worker reads the order from these bytes.

    `path` is as sent, with its query; the times and the key are as in their headers.
    """

    method: str
    path: Annotated[str, Meta(max_length=8192)]
    timestamp: Annotated[str, Meta(max_length=64)] | None = None
    expires_at: Annotated[str, Meta(max_length=64)] | None = None
    idempotency_key: Annotated[str, Meta(max_length=255)] | None = None
    body: bytes
    quorum: Uuid | None = None
    shown: Annotated[tuple[ShownSigner, ...], Meta(min_length=1, max_length=32)]

    def __repr__(self) -> str:
        return f"Authorization({self.quorum or self.shown[0].signer})"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The common part of every caller."""

    proof: Proof
    origin: Origin
    idempotency: IdempotencyKey | None = None
    # Beside an agent's token, on the routes that take one.
    authorization: Authorization | None = None


class TenantCaller(Caller, frozen=True, kw_only=True):
    """A caller that acts for a tenant: by default a program with the tenant's API key."""

    tenant: str
    principal: str


class SessionCaller(TenantCaller, frozen=True, kw_only=True):
    """A person, signed in to one tenant; `mfa_at` is when a second factor was last shown, in Unix seconds."""

    user: str
    session: str
    role: Role
    mfa_at: int | None
    # The app client at whose page the session began.
    page: str | None = None
    # Single sign-on of the tenant began it.
    bound: bool = False
    # Whose token was shown beside the session, on the routes that take both.
    agent: str | None = None


class AppClientCaller(TenantCaller, frozen=True, kw_only=True):
    """A server integration with the secret of one of the tenant's app clients."""

    client: str


class AgentCaller(Caller, frozen=True, kw_only=True):
    """An agent with a token the signer minted for it."""

    tenant: str
    agent: str


class PlatformCaller(Caller, frozen=True, kw_only=True):
    """The operator of this deployment."""

    key_prefix: str
    scopes: tuple[str, ...] | None = None
