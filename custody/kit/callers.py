"""Who asks. A caller is proven at the edge of the api and again, from the same credential, by the signer."""

from typing import Literal

import msgspec

from custody.kit.shapes import Role


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The raw credential that a caller showed; the signer derives tenant and agent from it, never from the api."""

    kind: Literal["agent", "tenant_key", "platform_key", "session", "app_client"]
    value: str

    def __repr__(self) -> str:
        return f"Proof({self.kind})"


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a request came from, for the audit trail; the api's word."""

    request_id: str
    ip: str | None = None
    user_agent: str | None = None


class IdempotencyKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request's `Idempotency-Key`, hashed, with the route it was sent to and a fingerprint of what it said."""

    route: str
    key_hash: bytes
    fingerprint: bytes


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """What every caller has in common."""

    proof: Proof
    origin: Origin
    idempotency: IdempotencyKey | None = None


class TenantCaller(Caller, frozen=True, kw_only=True):
    """Whoever acts for a tenant: by itself a program that holds the tenant's API key."""

    tenant: str
    principal: str


class SessionCaller(TenantCaller, frozen=True, kw_only=True):
    """A person, signed in to one tenant; `mfa_at` is when a second factor was last shown, in Unix seconds."""

    user: str
    session: str
    role: Role
    mfa_at: int | None


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
