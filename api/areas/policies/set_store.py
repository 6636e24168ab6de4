"""Queries of policy sets. Only the signer writes them; what is read here is for showing, never for judging."""

from typing import Annotated, Any

import msgspec

from api.areas.policies.store import to_public
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.described import described
from custody.kit.paging import AROUND, Listed, Page, fitting, page_of, reach
from custody.kit.shapes import DisplayName
from custody.policies.kinds import PolicyRule
from custody.protocol.signer.policy_sets import PolicySet
from custody.protocol.signer.refusals import PolicySetAbsent

_READ = """
SELECT s.id, s.name, s.version, s.rules, s.created_at, s.updated_at,
       (SELECT count(*) FROM agents a WHERE a.tenant_id = s.tenant_id AND a.policy_set = s.id) AS agents
  FROM policy_sets s WHERE s.tenant_id = $1
"""
_ORDER = "created_at DESC, id"
_rows = msgspec.json.Decoder(list[tuple[str, str, bool, str]]).decode


class PolicySetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy set as it is to be."""

    name: Annotated[DisplayName, described("A name for people.")]
    policies: Annotated[list[PolicyRule], described("All rules of the set.")]


async def all_of(pool: Pool, tenant: str, page: Page) -> Listed[PolicySet]:
    """A tenant's policy sets, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(
            fitting(f"{_READ} ORDER BY {_ORDER} LIMIT $2 OFFSET $3", _ORDER, f"octet_length(rules) + {AROUND}"),
            tenant,
            page.limit,
            page.offset,
        )
        to_count = reach(page.offset, page.limit)
        counted = to_count.query("FROM policy_sets WHERE tenant_id = $1")
        total = to_count.total(await connection.fetchval(counted, tenant))
    return page_of([_show(row) for row in rows], total)


async def one_of(pool: Pool, tenant: str, set_id: str) -> PolicySet:
    """One policy set; PolicySetAbsent if there is none."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(f"{_READ} AND s.id = $2", tenant, set_id)
    if row is None:
        raise PolicySetAbsent
    return _show(row)


def _show(row: Any) -> PolicySet:
    return PolicySet(
        id=row["id"],
        name=row["name"],
        version=row["version"],
        policies=[to_public(*rule) for rule in _rows(row["rules"])],
        agents=row["agents"],
        created_at=clock.iso(row["created_at"]),
        updated_at=clock.iso(row["updated_at"]),
    )
