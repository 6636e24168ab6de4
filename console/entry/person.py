"""The signed-in person, as far as the console needs to know them."""

from typing import Any

import msgspec

from console.wire.api_client import ApiClient
from words.texts.plain import clip, short

ADMINS = frozenset({"owner", "admin"})
_SHOWN_CHARACTERS = 40


class _User(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    email: str | None = None
    wallet_address: str | None = None

    @property
    def name(self) -> str:
        return clip(self.email, _SHOWN_CHARACTERS) if self.email else short(self.wallet_address or self.id)


class _Tenant(msgspec.Struct, frozen=True):
    id: str
    name: str
    role: str


class _CurrentSession(msgspec.Struct, frozen=True):
    user: _User
    tenant: _Tenant


class Person(msgspec.Struct, frozen=True):
    """A person in a tenant, or a holder of the tenant's key (`user` is None, and the tenant's id is unknown)."""

    user: str | None = None
    name: str | None = None
    role: str | None = None
    tenant: str | None = None
    tenant_name: str | None = None

    @property
    def shown(self) -> str:
        """For the heading."""
        if self.user is None:
            return "with the tenant key"
        return f"{self.name} ({self.role}) in {clip(self.tenant_name or self.tenant or '', _SHOWN_CHARACTERS)}"

    @property
    def may_decide(self) -> bool:
        """True if the API would accept a decision of theirs."""
        return self.user is None or self.role in ADMINS

    def is_same(self, other: "Person") -> bool:
        """Tell whether it is the same person in the same tenant, perhaps with another role or name by now."""
        return (self.user, self.tenant) == (other.user, other.tenant)


async def find_person(client: ApiClient) -> Person:
    """Ask who is signed in; raises SignedOut where the credential is no good."""
    if client.credential is not None and client.credential.is_session:
        session = await client.get("/auth/session", _CurrentSession)
        user, tenant = session.user, session.tenant
        return Person(user.id, user.name, tenant.role, tenant.id, tenant.name)
    await client.get("/approvals/stats", dict[str, Any])
    return Person()


async def find_tenant(client: ApiClient) -> str | None:
    """The tenant of a key."""
    return (await client.get("/me", _OfTenant)).tenant_id


class _OfTenant(msgspec.Struct, frozen=True, rename="camel"):
    tenant_id: str | None = None
