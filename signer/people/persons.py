"""Who a person is: found by what was proven, made at the first sign-in together with a tenant of his own."""

from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.kit import clock, ids
from custody.kit.callers import Origin
from custody.kit.errors import Forbidden, Unauthenticated
from custody.kit.shapes import Role
from signer.administration import tenants
from signer.context import Signer
from signer.proofs import MEMBERSHIP_MAC, PLATFORM, membership_content
from signer.sealing import fields

IDENTITY_MAC = "identity-mac"
# Any number that only this story uses: two first sign-ins of one wallet make one user.
_LOCK = "SELECT pg_advisory_xact_lock(7160004, hashtext($1 || ':' || $2))"
_FIND = (
    "SELECT i.user_id, i.mac, u.deactivated_at FROM identities i JOIN users u ON u.id = i.user_id "
    "WHERE i.kind = $1 AND i.subject = $2"
)


class NotAMember(Forbidden):
    """You are not a member of this tenant."""

    def __init__(self) -> None:
        super().__init__(code="not_a_member")


class Deactivated(Unauthenticated):
    """This account is deactivated."""


class Membership(msgspec.Struct, frozen=True):
    """A tenant and what a person is there; `api_key` once, where the tenant was made for him just now."""

    tenant: str
    name: str
    role: Role
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Membership({self.tenant}, {self.role})"


async def find_or_make(connection: Any, signer: Signer, kind: str, subject: str) -> str:
    """The user behind a proven identity, made if there is none. Call it in a transaction."""
    await connection.execute(_LOCK, kind, subject)
    row = await connection.fetchrow(_FIND, kind, subject)
    if row is not None:
        user = str(row["user_id"])
        signer.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, fields(kind, subject, user))
        if row["deactivated_at"] is not None:
            raise Deactivated
        return user
    user, now = ids.new_uuid(), clock.now()
    await connection.execute("INSERT INTO users (id, created_at) VALUES ($1, $2)", user, now)
    await add_identity(connection, signer, user, kind, subject)
    return user


async def add_identity(connection: Any, signer: Signer, user: str, kind: str, subject: str) -> None:
    """Let a person sign in with one more thing. A unique violation says that it is somebody's already."""
    mac = signer.sealer.mac(IDENTITY_MAC, PLATFORM, fields(kind, subject, user))
    await connection.execute(
        "INSERT INTO identities (kind, subject, user_id, mac, created_at) VALUES ($1, $2, $3, $4, $5)",
        kind, subject, user, mac, clock.now(),
    )  # fmt: skip


async def membership(connection: Any, signer: Signer, user: str, tenant: str) -> Membership:
    """What a person is in one tenant; NotAMember, whether there is such a tenant or not."""
    row = await connection.fetchrow("SELECT * FROM membership_of($1, $2)", user, tenant)
    if row is None:
        raise NotAMember
    return _checked(signer, user, row)


async def home(connection: Any, signer: Signer, user: str, origin: Origin) -> Membership:
    """The tenant that a person comes to who names none: his own, else the oldest; made at the first sign-in.

    NotAMember where his own is there without him: whoever removed him from it meant it.
    """
    own = personal(user)
    row = await connection.fetchrow("SELECT * FROM home_of($1, $2)", user, own)
    if row is not None:
        return _checked(signer, user, row)
    try:
        api_key = await tenants.make_personal(connection, signer, own, user, origin)
    except asyncpg.UniqueViolationError:
        raise NotAMember from None
    return Membership(own, tenants.PERSONAL_NAME, "owner", api_key)


def personal(user: str) -> str:
    """The id of a person's own tenant."""
    return f"{tenants.PERSONAL_PREFIX}{user}"


def membership_mac(signer: Signer, tenant: str, user: str, role: Role, since: datetime) -> bytes:
    """What makes a membership ours."""
    return signer.sealer.mac(MEMBERSHIP_MAC, tenant, membership_content(tenant, user, role, since))


def _checked(signer: Signer, user: str, row: Any) -> Membership:
    """The row as a membership; Tampered unless the signer wrote it."""
    content = membership_content(row["tenant_id"], user, row["role"], row["created_at"])
    signer.sealer.check_mac(row["mac"], MEMBERSHIP_MAC, row["tenant_id"], content)
    return Membership(row["tenant_id"], row["name"], row["role"])
