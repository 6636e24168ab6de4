"""Queries of the approval queue."""

from typing import Any

import msgspec

from custody.approvals.types import Approval, ApprovalQuery, ApprovalStats
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.transactions.store import number

# An item whose time is up is expired from that moment on, whether or not somebody has written it down yet.
_DUE = "p.status = 'pending' AND p.expires_at <= clock.now"
_STATUS = f"CASE WHEN {_DUE} THEN 'expired' ELSE p.status END"
# The table's own column stands in each, for the index to be of use.
_WHERE = {
    "all": "true",
    "pending": "p.status = 'pending' AND (p.expires_at IS NULL OR p.expires_at > clock.now)",
    "expired": f"(p.status = 'expired' OR ({_DUE}))",
    "approved": "p.status = 'approved'",
    "rejected": "p.status = 'rejected'",
}
# One moment for all rows, so that none is asked for as waiting and shown as expired.
_CLOCK = "WITH clock AS MATERIALIZED (SELECT service_now() AS now)"
_OF_TENANT = "FROM approvals p, clock WHERE p.tenant_id = $1 AND"
_ORDER = "ORDER BY p.requested_at DESC, p.id"


class Asked(msgspec.Struct, frozen=True):
    """What was asked for by a pending item, so that it can be prepared afresh."""

    agent: AgentRef
    kind: str
    order_text: str


async def all_of(pool: Pool, tenant: str, query: ApprovalQuery) -> Listed:
    """The queue, newest first."""
    where = _WHERE[query.status]
    # What belongs to the items is looked up for those of the page alone, however many come before it.
    page = (
        f"{_CLOCK}, p AS MATERIALIZED (SELECT p.*, {_STATUS} AS shown_status {_OF_TENANT} {where} {_ORDER} "
        f"LIMIT {int(query.limit)} OFFSET {int(query.offset)}) "
        "SELECT p.*, a.name AS agent_name, t.kind, t.to_address, t.value, t.chain_id, t.status AS tx_status, "
        "t.effects, t.policy_results "
        "FROM p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id "
        f"JOIN agents a ON a.tenant_id = p.tenant_id AND a.id = p.agent_id {_ORDER}"
    )
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(page, tenant)
        total = await connection.fetchval(f"{_CLOCK} SELECT count(*) {_OF_TENANT} {where}", tenant)
    return Listed([_approval(row) for row in rows], total)


async def find_asked(
    pool: Pool, tenant: str, *, approval_id: str | None = None, tx_id: str | None = None, agent: str | None = None
) -> Asked | None:
    """The order behind an item, by either name, or None."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(
            "SELECT p.agent_id, t.kind, t.order_text FROM approvals p JOIN transactions t ON t.tenant_id = "
            "p.tenant_id AND t.id = p.tx_id "
            "WHERE p.tenant_id = $1 AND (p.id = $2 OR ($2 IS NULL AND p.tx_id = $3)) AND ($4::text IS NULL OR "
            "p.agent_id = $4)",
            tenant, approval_id, tx_id, agent,
        )  # fmt: skip
    return None if row is None else Asked(AgentRef(tenant, row["agent_id"]), row["kind"], row["order_text"])


async def stats(pool: Pool, tenant: str) -> ApprovalStats:
    """The queue in figures, over all agents of the tenant."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(
            f"{_CLOCK} "
            "SELECT count(*) FILTER (WHERE s = 'pending') AS pending, count(*) FILTER (WHERE s = 'approved') AS "
            "approved, "
            "count(*) FILTER (WHERE s = 'rejected') AS rejected, count(*) FILTER (WHERE s = 'expired') AS "
            "expired, count(*) AS total, "
            "COALESCE(avg(extract(epoch FROM resolved_at - requested_at)) FILTER (WHERE s IN ('approved', "
            "'rejected')), 0)::float AS wait "
            f"FROM (SELECT p.*, {_STATUS} AS s {_OF_TENANT} true) q",
            tenant,
        )
    return ApprovalStats(
        row["pending"], row["approved"], row["rejected"], row["expired"], row["total"], round(row["wait"], 3)
    )


def _approval(row: Any) -> Approval:
    return Approval(
        id=str(row["id"]), tx_id=str(row["tx_id"]), agent_id=row["agent_id"], agent_name=row["agent_name"],
        status=row["shown_status"],
        requested_at=clock.iso(row["requested_at"]),
        resolved_at=clock.iso(row["resolved_at"]) if row["resolved_at"] else None,
        resolved_by=row["resolved_by"], resolved_by_user_id=row["resolved_by_user_id"], reason=row["reason"],
        expires_at=clock.iso(row["expires_at"]) if row["expires_at"] else None, kind=row["kind"],
        to_address=row["to_address"],
        value=number(row["value"]), chain_id=row["chain_id"], tx_status=row["tx_status"],
        effects=msgspec.json.decode(row["effects"]),
        policy_results=msgspec.json.decode(row["policy_results"]), digest=row["digest"].hex(),
    )  # fmt: skip
