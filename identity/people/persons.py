"""Who a person is: found by what was proven, made at the first sign-in together with a tenant of their own."""

from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.kit import clock, ids
from custody.kit.callers import Origin
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import Deactivated, NotAMember, RegistrationClosed
from custody.worker.proofs import MEMBERSHIP_MAC, PLATFORM, membership_content
from custody.worker.sealing import fields
from identity.administration import tenants
from identity.context import Identity

IDENTITY_MAC = "identity-mac"
# Any number that only this use case uses: two first sign-ins of one wallet make one user.
_LOCK = "SELECT pg_advisory_xact_lock(7160004, hashtext($1 || ':' || $2))"
_FIND = (
    "SELECT i.user_id, i.mac, u.deactivated_at FROM identities i JOIN users u ON u.id = i.user_id "
    "WHERE i.kind = $1 AND i.subject = $2"
)


class Membership(msgspec.Struct, frozen=True):
    """A tenant and what a person is there; `api_key` once, where the tenant was made for them just now."""

    tenant: str
    name: str
    role: Role
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Membership({self.tenant}, {self.role})"


async def find_or_make(connection: Any, identity: Identity, kind: str, subject: str) -> str:
    """The user behind a proven identity, made if there is none. Call it in a transaction."""
    await connection.execute(_LOCK, kind, subject)
    row = await connection.fetchrow(_FIND, kind, subject)
    if row is not None:
        user = str(row["user_id"])
        identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, fields(kind, subject, user))
        if row["deactivated_at"] is not None:
            raise Deactivated
        return user
    if not identity.allow_self_registration:
        raise RegistrationClosed
    user, now = ids.new_uuid(), clock.now()
    await connection.execute("INSERT INTO users (id, created_at) VALUES ($1, $2)", user, now)
    await add_identity(connection, identity, user, kind, subject)
    return user


async def add_identity(connection: Any, identity: Identity, user: str, kind: str, subject: str) -> None:
    """Let a person sign in with one more thing. A unique violation says that it is somebody's already."""
    mac = identity.sealer.mac(IDENTITY_MAC, PLATFORM, fields(kind, subject, user))
    await connection.execute(
        "INSERT INTO identities (kind, subject, user_id, mac, created_at) VALUES ($1, $2, $3, $4, $5)",
        kind,
        subject,
        user,
        mac,
        clock.now(),
    )


async def membership(connection: Any, identity: Identity, user: str, tenant: str) -> Membership:
    """What a person is in one tenant; NotAMember, whether there is such a tenant or not."""
    row = await connection.fetchrow("SELECT * FROM membership_of($1, $2)", user, tenant)
    if row is None:
        raise NotAMember
    return _checked(identity, user, row)


async def home(connection: Any, identity: Identity, user: str, origin: Origin) -> Membership:
    """The tenant that a person comes to who names none: their own, else the oldest; made at the first sign-in.

    RegistrationClosed where the operator lets nobody make one,
    NotAMember where their own is there without them: anyone who removed them from it meant it.
    """
    own = personal(user)
    row = await connection.fetchrow("SELECT * FROM home_of($1, $2)", user, own)
    if row is not None:
        return _checked(identity, user, row)
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
    """What makes a membership ours."""
    return identity.sealer.mac(MEMBERSHIP_MAC, tenant, membership_content(tenant, user, role, since))


def _checked(identity: Identity, user: str, row: Any) -> Membership:
    """The row as a membership; Tampered unless identity wrote it."""
    content = membership_content(row["tenant_id"], user, row["role"], row["created_at"])
    identity.sealer.check_mac(row["mac"], MEMBERSHIP_MAC, row["tenant_id"], content)
    return Membership(row["tenant_id"], row["name"], row["role"])
