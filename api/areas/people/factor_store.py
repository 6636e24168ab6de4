"""Queries about second factors and passkeys, through listed functions that take the person whose token was proven."""

from typing import Any

from api.areas.people.mfa_types import Factors, Method, Passkey
from custody.kit import clock
from custody.kit.db import Pool
from custody.kit.paging import Listed, Page, cut

_HINT_DIGITS = 2
_FACTORS = (
    "SELECT kind, subject, confirmed_at, recovery_left FROM user_factors($1) UNION ALL "
    "SELECT 'passkey', NULL, min(created_at), NULL FROM user_passkeys($1) HAVING count(*) > 0 ORDER BY kind"
)


async def factors(pool: Pool, user: str, mfa_at: int | None) -> Factors:
    """A person's second factors; `mfa_at` is when the session that asks last showed one."""
    rows = await pool.fetch(_FACTORS, user)
    left = sum(row["recovery_left"] or 0 for row in rows)
    methods = [_method(row) for row in rows if row["kind"] != "recovery"]
    return Factors(methods, left, clock.iso(clock.of_unix(mfa_at)) if mfa_at is not None else None)


async def passkeys(pool: Pool, user: str, page: Page) -> Listed[Passkey]:
    """A person's passkeys, the newest first."""
    return cut([_passkey(row) for row in await pool.fetch("SELECT * FROM user_passkeys($1)", user)], page)


def _method(row: Any) -> Method:
    hint = f"***{row['subject'][-_HINT_DIGITS:]}" if row["subject"] else None
    return Method(row["kind"], clock.iso(row["confirmed_at"]), hint)


def _passkey(row: Any) -> Passkey:
    return Passkey(
        id=str(row["id"]),
        name=row["name"],
        transports=list(row["transports"]),
        created_at=clock.iso(row["created_at"]),
        last_used_at=clock.iso(row["used_at"]) if row["used_at"] else None,
    )
