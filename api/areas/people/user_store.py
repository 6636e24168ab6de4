"""Queries about people as the operator and a tenant's admins see them. Each is one round trip to a listed function."""

from typing import Any

import msgspec

from api.areas.people import linked
from api.areas.people.linked import Selector
from api.areas.people.user_types import (
    DeploymentUser,
    LinkedAccount,
    PlatformUser,
    TenantUser,
    UsersQuery,
    WalletExternalId,
)
from custody.kit import clock, cursors
from custody.kit.cursors import Place
from custody.kit.db import Pool
from custody.kit.paging import AS_JSON, Listed, Total, fitting, page_of, reach

# Whose list it is of.
_NO_TENANT = "platform"
# By one page of a search: a few hundred bytes of each are read.
LOOKED_AT = 2_000
_FIND = "SELECT * FROM find_platform_users($1, $2, $3, $4)"
_GET = "SELECT * FROM platform_user($1)"
# What a person signs in with is told with the names of its fields.
_SIZE = f"2 * {AS_JSON}"
_MEMBERS = fitting("SELECT * FROM tenant_users($1, $2, $3, $4, $5) WITH ORDINALITY", "ordinality", _SIZE)
_PAGE = fitting("SELECT * FROM users_page($1, $2, $3, $4, $5, $6) WITH ORDINALITY", "ordinality", _SIZE)
_HAS_TENANT = "SELECT EXISTS (SELECT FROM platform_tenant($1))"
_COUNT = "SELECT total FROM tenant_users($1, NULL, 1, 0, $2)"
_identities = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


async def find(pool: Pool, tenant: str | None, selector: Selector) -> list[PlatformUser]:
    """Find the people whom a selector means: nobody, one person, or two where it is ambiguous."""
    rows = await pool.fetch(_FIND, tenant, selector.by, selector.value, selector.head)
    return [_person(row, PlatformUser) for row in rows]


async def get(pool: Pool, user: str) -> PlatformUser | None:
    """One person."""
    row = await pool.fetchrow(_GET, user)
    return _person(row, PlatformUser) if row else None


async def page(pool: Pool, query: UsersQuery) -> Listed[DeploymentUser]:
    """People of all tenants, the newest first. A search looks at so many a page, and at more on the next one."""
    walk = cursors.walk(_NO_TENANT, ("users",), query)
    place = cursors.begin(walk, query)
    behind = (place.at, place.id) if place else (None, None)
    found = await pool.fetch(_PAGE, query.search, query.active, *behind, query.limit, LOOKED_AT)
    rows = [row["person"] for row in found if row["person"]]
    at, last = found[0]["looked_at"], found[0]["looked_id"]
    if found[0]["found"] > len(found):
        # The page ended by its length, so it ends with who is on it.
        at, last = rows[-1]["created_at"], rows[-1]["id"]
    total = (place or Place(0, total=Total(0, is_estimate=True))).total_at(len(rows), more=last is not None)
    people = [_person(row, DeploymentUser) for row in rows]
    if last is None:
        return page_of(people, total, None)
    before = (place.before if place else 0) + len(rows)
    return page_of(people, total, cursors.write(walk, Place(clock.unix_microseconds(at), last, before, total)))


async def members(pool: Pool, tenant: str, external_id: str | None, limit: int, offset: int) -> Listed[PlatformUser]:
    """Members of a tenant as the operator sees them, the newest first."""
    rows, total = await _members(pool, tenant, external_id, limit, offset)
    return page_of([_person(row["person"], PlatformUser) for row in rows], total)


async def team(pool: Pool, tenant: str, external_id: str | None, limit: int, offset: int) -> Listed[TenantUser]:
    """Members of a tenant as its admins see them, the newest first."""
    rows, total = await _members(pool, tenant, external_id, limit, offset)
    return page_of([_member(tenant, row) for row in rows], total)


async def has_tenant(pool: Pool, tenant: str) -> bool:
    """Say whether there is such a tenant."""
    return bool(await pool.fetchval(_HAS_TENANT, tenant))


async def _members(
    pool: Pool, tenant: str, external_id: str | None, limit: int, offset: int
) -> tuple[list[Any], Total]:
    to_count = reach(offset, limit)
    rows = await pool.fetch(_MEMBERS, tenant, external_id, limit, offset, to_count.most + 1)
    if rows:
        return rows, to_count.total(rows[0]["total"])
    # Beyond the last page there is no row to tell how many there are.
    alone = offset and external_id is None
    counted = (await pool.fetchval(_COUNT, tenant, to_count.most + 1) or 0) if alone else 0
    return rows, to_count.total(counted)


def _person[P: PlatformUser](row: Any, shape: type[P]) -> P:
    address, chain = linked.wallet(row["wallet_kind"], row["wallet"])
    return shape(
        user_id=str(row["id"]),
        email=row["email"],
        name=row["name"],
        image=row["image"],
        email_verified=row["email_verified"],
        wallet_address=address,
        wallet_chain=chain,
        custom_metadata=msgspec.json.decode(row["custom_metadata"]),
        deactivated_at=clock.iso(row["deactivated_at"]) if row["deactivated_at"] else None,
        created_at=clock.iso(row["created_at"]),
        updated_at=clock.iso(row["updated_at"]),
        tenant_ids=list(row["tenants"]),
        linked_accounts=[
            LinkedAccount(id_, *linked.to_public(kind, subject))
            for id_, kind, subject in _identities(row["linked"] or "[]")
        ],
        wallet_external_ids=[WalletExternalId(*pair) for pair in _pairs(row["external_ids"] or "[]")],
    )


def _member(tenant: str, row: Any) -> TenantUser:
    person = row["person"]
    address, chain = linked.wallet(person["wallet_kind"], person["wallet"])
    return TenantUser(
        user_id=str(person["id"]),
        email=person["email"],
        name=person["name"],
        image=person["image"],
        role=row["role"],
        wallet_address=address,
        wallet_chain=chain,
        wallet_external_ids=[WalletExternalId(tenant, row["external_id"])] if row["external_id"] else [],
        created_at=clock.iso(row["since"]),
    )
