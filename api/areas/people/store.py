"""Queries about people. Each goes through a listed function that takes the person whose token was proven."""

from typing import Any

import msgspec

from custody.identity.mfa import MfaPolicy
from custody.kit import clock
from custody.kit.db import Pool
from custody.kit.jwt import SessionClaims
from custody.kit.paging import Listed, Page, cut
from custody.kit.shapes import Role
from custody.people.types import OwnMembership, OwnSession
from custody.protocol.identity.sessions import Profile

_MEMBERSHIPS = (
    "SELECT tenant_id, name, role FROM (SELECT * FROM memberships_of($1) UNION SELECT * FROM membership_of($1, $2)) m "
    "ORDER BY created_at, tenant_id"
)


class _Judging(msgspec.Struct, frozen=True):
    """Of what the signer judges by, the part that matters to early refusal."""

    mfa: MfaPolicy = MfaPolicy()


class Standing(msgspec.Struct, frozen=True):
    """The present rights of a session: the role of this moment, the tenant's policy, the factors there are.

    `mfa_counts_from` is the earliest moment (Unix seconds) at which a factor counts that was shown; None: none does.
    `item_counts_from` is the same for one that was shown for a single item, of which the session has nothing.
    """

    role: Role
    mfa: MfaPolicy
    methods: tuple[str, ...]
    mfa_counts_from: int | None
    item_counts_from: int


async def standing(pool: Pool, claims: SessionClaims) -> Standing | None:
    """The standing of a session in its token's tenant; None when it ended, or its person is no longer a member."""
    row = await pool.fetchrow(
        "SELECT role, methods, mfa_counts_from, item_counts_from, judging FROM session_standing($1, $2, $3, $4)",
        claims.sid,
        claims.sub,
        claims.tid,
        claims.iat,
    )
    if row is None:
        return None
    judging = msgspec.json.decode(row["judging"], type=_Judging) if row["judging"] else _Judging()
    return Standing(row["role"], judging.mfa, tuple(row["methods"]), row["mfa_counts_from"], row["item_counts_from"])


async def profile(pool: Pool, user: str) -> Profile:
    """The person as answers show them."""
    row = await pool.fetchrow("SELECT * FROM user_profile($1)", user)
    return Profile(user, row["email"], row["wallet"], row["email_verified"])


async def sessions(pool: Pool, user: str, current: str, page: Page) -> Listed[OwnSession]:
    """A person's living sessions, the last used first."""
    rows = await pool.fetch("SELECT * FROM user_sessions($1)", user)
    return cut([_session(row, current) for row in rows], page)


async def memberships(pool: Pool, user: str, current: str) -> list[OwnMembership]:
    """A person's tenants, the oldest first: a thousand at most, and the current one."""
    rows = await pool.fetch(_MEMBERSHIPS, user, current)
    return [OwnMembership(row["tenant_id"], row["name"], row["role"]) for row in rows]


async def methods(pool: Pool, user: str) -> list[str]:
    """The second factors that a person has."""
    return list(await pool.fetchval("SELECT mfa_methods($1)", user))


def _session(row: Any, current: str) -> OwnSession:
    return OwnSession(
        id=str(row["id"]),
        current=str(row["id"]) == current,
        tenant_id=row["tenant_id"],
        provider=row["provider"],
        amr=list(row["amr"]),
        mfa_verified_at=clock.iso(row["mfa_at"]) if row["mfa_at"] else None,
        created_at=clock.iso(row["created_at"]),
        last_used_at=clock.iso(row["used_at"]),
        expires_at=clock.iso(row["expires_at"]),
        ip_address=row["ip_address"],
        user_agent=row["user_agent"],
    )
