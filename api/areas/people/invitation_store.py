"""Queries of invitations; their tokens are nowhere."""

from typing import Any

from api.areas.people.invitation_types import InvitationList
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Page, reach
from custody.protocol.identity.invitations import Invitation
from custody.protocol.refusals import TenantAbsent

_PAGE = (
    "SELECT tenant_id, id, email, role, accepted_by, ended_at, created_at, expires_at, "
    "CASE WHEN status = 'pending' AND expires_at <= service_now() THEN 'expired' ELSE status END AS status "
    "FROM invitations WHERE tenant_id = $1 ORDER BY created_at DESC, id LIMIT $2 OFFSET $3"
)
_HAS_TENANT = "SELECT EXISTS (SELECT FROM tenants WHERE id = $1)"


async def page(pool: Pool, tenant: str, page: Page) -> InvitationList:
    """A tenant's invitations, the newest first; TenantAbsent if there is no such tenant."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_PAGE, tenant, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        counted = to_count.query("FROM invitations WHERE tenant_id = $1")
        total = to_count.total(await connection.fetchval(counted, tenant))
        if not total.rows and not await connection.fetchval(_HAS_TENANT, tenant):
            raise TenantAbsent
    return InvitationList([_invitation(row) for row in rows], total.rows, total.is_estimate, page.limit, page.offset)


def _invitation(row: Any) -> Invitation:
    return Invitation(
        id=str(row["id"]),
        tenant_id=row["tenant_id"],
        email=row["email"],
        role=row["role"],
        status=row["status"],
        created_at=clock.iso(row["created_at"]),
        expires_at=clock.iso(row["expires_at"]),
        accepted_by=str(row["accepted_by"]) if row["accepted_by"] else None,
        ended_at=clock.iso(row["ended_at"]) if row["ended_at"] else None,
    )
