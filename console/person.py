"""Who is signed in, as far as the console needs to know it."""

from typing import Any

import msgspec

from console.api_client import ApiClient

ADMINS = frozenset({"owner", "admin"})


class _User(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    email: str | None = None
    wallet_address: str | None = None


class _Tenant(msgspec.Struct, frozen=True):
    id: str
    name: str
    role: str


class _CurrentSession(msgspec.Struct, frozen=True):
    user: _User
    tenant: _Tenant


class Person(msgspec.Struct, frozen=True):
    """A person in a tenant, or whoever holds the tenant's key (`user` is None, and the tenant's id is not known)."""

    user: str | None = None
    name: str | None = None
    role: str | None = None
    tenant: str | None = None
    tenant_name: str | None = None

    @property
    def shown(self) -> str:
        """For the heading."""
        return f"{self.name} ({self.role}) in {self.tenant_name}" if self.user else "with the tenant key"

    @property
    def may_decide(self) -> bool:
        """Whether the API would take a decision of theirs."""
        return self.user is None or self.role in ADMINS


async def find_person(client: ApiClient) -> Person:
    """Ask who is signed in; raises SignedOut where the credential is no good."""
    if client.credential is not None and client.credential.is_session:
        session = await client.get("/auth/session", _CurrentSession)
        user, tenant = session.user, session.tenant
        return Person(user.id, user.email or user.wallet_address or user.id, tenant.role, tenant.id, tenant.name)
    await client.get("/approvals/stats", dict[str, Any])
    return Person()
