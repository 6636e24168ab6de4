"""The person: found by what was proven, made at the first sign-in together with a tenant of their own."""

from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.kit import clock, ids
from custody.kit.callers import Origin
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import Deactivated, NotAMember, RegistrationClosed
from custody.worker.proofs import MEMBERSHIP_MAC, membership_content
from custody.worker.proven import PLATFORM
from custody.worker.sealing import fields
from identity.administration import tenants
from identity.context import Identity

IDENTITY_MAC = "identity-mac"
# Any number that only this use case uses: two first sign-ins of one wallet make one user.
_LOCK = "SELECT pg_advisory_xact_lock(7160004, hashtext($1 || ':' || $2))"
_FIND = (
    "SELECT i.kind, i.subject, i.user_id, i.tenant_id, i.verified, i.blocked_at, i.mac, u.deactivated_at "
    "FROM identities i JOIN users u ON u.id = i.user_id WHERE i.kind = $1 AND i.subject = $2"
)
_ADD = (
    "INSERT INTO identities (kind, subject, user_id, tenant_id, verified, mac, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_OF_TENANT = (
    "SELECT kind, subject, user_id, tenant_id, verified, blocked_at, mac FROM identities "
    "WHERE user_id = $1 AND tenant_id = $2 FOR UPDATE"
)
_BLOCK = "UPDATE identities SET blocked_at = $3, mac = $4 WHERE kind = $1 AND subject = $2"
_MAKE = "INSERT INTO users (id, name, profile_email, created_at) VALUES ($1, $2, $3, $4)"
_VERIFY = "UPDATE identities SET verified = true, mac = $3 WHERE kind = $1 AND subject = $2"


class Membership(msgspec.Struct, frozen=True):
    """A tenant and what a person is there; `api_key` once, where the tenant was made for them just now."""

    tenant: str
    name: str
    role: Role
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Membership({self.tenant}, {self.role})"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """An identity as its row has it, its MAC found true, and whether its person is active.

    `tenant`: of a tenant's identity provider. `blocked`: its person was removed from that tenant.
    """

    kind: str
    subject: str
    user: str
    tenant: str | None = None
    verified: bool = True
    blocked: bool = False
    active: bool = True

    @property
    def content(self) -> bytes:
        """Build what the MAC is of. What most identities are stands in none, so that those of before keep theirs."""
        return fields(
            self.kind,
            self.subject,
            self.user,
            *(() if self.verified else ("unverified",)),
            *(("tenant", self.tenant) if self.tenant is not None else ()),
            *(("blocked",) if self.blocked else ()),
        )


def of_row(row: Any) -> Known:
    """The row of an identity, whose MAC nobody has looked at yet."""
    return Known(
        kind=row["kind"],
        subject=row["subject"],
        user=str(row["user_id"]),
        tenant=row["tenant_id"],
        verified=row["verified"],
        blocked=row["blocked_at"] is not None,
    )


async def hold(connection: Any, kind: str, subject: str) -> None:
    """Keep everybody from making or taking this identity until the transaction ends.

    Before the lock on its person, always: a sign-in takes them in this order too.
    """
    await connection.execute(_LOCK, kind, subject)


async def find(connection: Any, identity: Identity, kind: str, subject: str) -> Known | None:
    """The identity, if it is somebody's. What makes one waits until the transaction that this is in has ended."""
    await hold(connection, kind, subject)
    row = await connection.fetchrow(_FIND, kind, subject)
    if row is None:
        return None
    found = of_row(row)
    identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, found.content)
    return msgspec.structs.replace(found, active=row["deactivated_at"] is None)


async def find_or_make(connection: Any, identity: Identity, kind: str, subject: str, *, newcomers: bool = False) -> str:
    """The user behind a proven identity, made if there is none. Call it in a transaction.

    `newcomers`: a tenant lets people register, whatever the operator says of tenants of their own.
    """
    found = await find(connection, identity, kind, subject)
    if found is None:
        if not (newcomers or identity.allow_self_registration):
            raise RegistrationClosed
        user = await make(connection)
        await add_identity(connection, identity, Known(kind=kind, subject=subject, user=user))
        return user
    if not found.active:
        raise Deactivated
    if not found.verified:
        # The operator named the address; now it is proven.
        await verify(connection, identity, found)
    return found.user


async def make(connection: Any, *, name: str | None = None, shown_email: str | None = None) -> str:
    """A new user, who has nothing to sign in with yet; the address is only shown."""
    user = ids.new_uuid()
    await connection.execute(_MAKE, user, name, shown_email, clock.now())
    return user


async def add_identity(connection: Any, identity: Identity, made: Known) -> None:
    """Let a person sign in with one more thing. A unique violation says that it is somebody's already."""
    mac = identity.sealer.mac(IDENTITY_MAC, PLATFORM, made.content)
    await connection.execute(_ADD, made.kind, made.subject, made.user, made.tenant, made.verified, mac, clock.now())


async def verify(connection: Any, identity: Identity, found: Known) -> None:
    """Note that the person has proven an address that was only named."""
    mac = identity.sealer.mac(IDENTITY_MAC, PLATFORM, msgspec.structs.replace(found, verified=True).content)
    await connection.execute(_VERIFY, found.kind, found.subject, mac)


async def keep_out(connection: Any, identity: Identity, user: str, tenant: str) -> None:
    """Note at a tenant's own identities of a person that they were removed, so sign-on does not bring them back."""
    await _block(connection, identity, user, tenant, blocked=True)


async def let_back(connection: Any, identity: Identity, user: str, tenant: str) -> None:
    """Take that back: the operator or an invitation made them a member again."""
    await _block(connection, identity, user, tenant, blocked=False)


async def _block(connection: Any, identity: Identity, user: str, tenant: str, *, blocked: bool) -> None:
    for row in await connection.fetch(_OF_TENANT, user, tenant):
        found = of_row(row)
        identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, found.content)
        mac = identity.sealer.mac(IDENTITY_MAC, PLATFORM, msgspec.structs.replace(found, blocked=blocked).content)
        await connection.execute(_BLOCK, found.kind, found.subject, clock.now() if blocked else None, mac)


async def membership(connection: Any, identity: Identity, user: str, tenant: str) -> Membership:
    """Find what a person is in one tenant; NotAMember, whether there is such a tenant or not."""
    row = await connection.fetchrow("SELECT * FROM membership_of($1, $2)", user, tenant)
    if row is None:
        raise NotAMember
    return _check(identity, user, row)


async def home(connection: Any, identity: Identity, user: str, origin: Origin) -> Membership:
    """The tenant that a person comes to who names none: their own, else the oldest; made at the first sign-in.

    RegistrationClosed where the operator lets nobody make one,
    NotAMember where their own is there without them: anyone who removed them from it meant it.
    """
    own = personal(user)
    row = await connection.fetchrow("SELECT * FROM home_of($1, $2)", user, own)
    if row is not None:
        return _check(identity, user, row)
    if not identity.allow_self_registration:
        raise RegistrationClosed
    try:
        api_key = await tenants.make_personal(connection, identity, own, user, origin)
    except asyncpg.UniqueViolationError:
        raise NotAMember from None
    return Membership(own, tenants.PERSONAL_NAME, "owner", api_key)


def personal(user: str) -> str:
    """The id of a person's own tenant."""
    return f"{tenants.PERSONAL_PREFIX}{user}"


def membership_mac(identity: Identity, tenant: str, user: str, role: Role, since: datetime) -> bytes:
    """Compute the MAC that makes a membership ours."""
    return identity.sealer.mac(MEMBERSHIP_MAC, tenant, membership_content(tenant, user, role, since))


def _check(identity: Identity, user: str, row: Any) -> Membership:
    """The row as a membership; Tampered unless identity wrote it."""
    content = membership_content(row["tenant_id"], user, row["role"], row["created_at"])
    identity.sealer.check_mac(row["mac"], MEMBERSHIP_MAC, row["tenant_id"], content)
    return Membership(row["tenant_id"], row["name"], row["role"])
