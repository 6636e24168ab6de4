"""Members of a tenant, named by the operator. A changed role has another MAC, so living sessions feel it at once.

Who was removed and is added again is another member: what he held of before stays without worth.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from custody.kit import clock
from custody.kit.errors import NotFound
from custody.protocol.messages import Done, Outcome, PutMember, RemoveMember
from signer.administration.acts import operating, remember, tell
from signer.administration.tenants import TenantAbsent
from signer.context import Ask, Signer
from signer.people.persons import membership_mac
from signer.proofs import ProvenPlatform

WRITE_SCOPE = "platform:user:write"
_TENANT = "SELECT id FROM tenants WHERE id = $1"
_BEFORE = "SELECT role, created_at FROM memberships WHERE tenant_id = $1 AND user_id = $2"
_PUT = (
    "INSERT INTO memberships (tenant_id, user_id, role, mac, created_at) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (tenant_id, user_id) DO UPDATE SET role = excluded.role, mac = excluded.mac"
)
_REMOVE = "DELETE FROM memberships WHERE tenant_id = $1 AND user_id = $2 RETURNING role"
_END_SESSIONS = (
    "UPDATE sessions SET revoked_at = service_now() WHERE tenant_id = $1 AND user_id = $2 AND revoked_at IS NULL"
)


class UserAbsent(NotFound):
    """There is no such user."""


class MemberAbsent(NotFound):
    """This user is not a member of this tenant."""


async def put(signer: Signer, message: PutMember, ask: Ask[ProvenPlatform]) -> Outcome:
    """Make a user a member, or give him another role."""
    tenant, user, role = message.tenant, message.user, message.role
    async with _in(signer, ask, tenant) as connection:
        row = await connection.fetchrow(_BEFORE, tenant, user)
        before, since = (row["role"], row["created_at"]) if row else (None, clock.now())
        mac = membership_mac(signer, tenant, user, role, since)
        try:
            await connection.execute(_PUT, tenant, user, role, mac, since)
        except asyncpg.ForeignKeyViolationError:
            raise UserAbsent from None
        if before is None:
            await tell(connection, ask, "membership.added", "user", user, role=role)
        elif before != role:
            await tell(connection, ask, "membership.changed", "user", user, role=role, before=before)
        data = {"tenantId": tenant, "userId": user, "role": role, "createdAt": clock.iso(since)}
        outcome = Done(data | {"added": before is None})
        await remember(connection, ask, outcome)
    return outcome


async def remove(signer: Signer, message: RemoveMember, ask: Ask[ProvenPlatform]) -> Outcome:
    """End a membership and the sessions in it; also of the last owner, whom nobody but the operator could replace."""
    tenant, user, outcome = message.tenant, message.user, Done({"deleted": message.user})
    async with _in(signer, ask, tenant) as connection:
        role = await connection.fetchval(_REMOVE, tenant, user)
        if role is None:
            raise MemberAbsent
        await connection.execute(_END_SESSIONS, tenant, user)
        await tell(connection, ask, "membership.removed", "user", user, before=role)
        await remember(connection, ask, outcome)
    return outcome


@asynccontextmanager
async def _in(signer: Signer, ask: Ask[ProvenPlatform], tenant: str) -> AsyncIterator[Any]:
    async with operating(signer, ask, tenant) as connection:
        if await connection.fetchval(_TENANT, tenant) is None:
            raise TenantAbsent
        yield connection
