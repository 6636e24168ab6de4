"""Queries of approvers' keys. Only the signer writes them; what is read here is for showing."""

from typing import Any

from custody.identity.roles import ADMINS
from custody.kit import clock
from custody.kit.callers import SessionCaller
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page, page_of, reach
from custody.protocol.signer.approver_keys import ApproverKey

_OF = "FROM approver_keys WHERE tenant_id = $1 AND ($2::uuid IS NULL OR user_id = $2)"
_PAGE = (
    "SELECT id, user_id, name, rp_id, credential_id, fingerprint, created_at, revoked_at "
    f"{_OF} ORDER BY created_at DESC, id LIMIT $3 OFFSET $4"
)


async def all_of(pool: Pool, caller: SessionCaller, page: Page) -> Listed[ApproverKey]:
    """The newest first: of the whole tenant for its owners and admins, else the person's own."""
    whose = None if caller.role in ADMINS else caller.user
    async with tenant_scope(pool, caller.tenant) as connection:
        rows = await connection.fetch(_PAGE, caller.tenant, whose, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        total = to_count.total(await connection.fetchval(to_count.query(_OF), caller.tenant, whose))
    return page_of([_key(row) for row in rows], total)


def _key(row: Any) -> ApproverKey:
    return ApproverKey(
        id=str(row["id"]),
        user_id=str(row["user_id"]),
        name=row["name"],
        rp_id=row["rp_id"],
        credential_id=row["credential_id"],
        fingerprint=row["fingerprint"],
        status="active" if row["revoked_at"] is None else "revoked",
        created_at=clock.iso(row["created_at"]),
        revoked_at=clock.iso(row["revoked_at"]) if row["revoked_at"] else None,
    )
