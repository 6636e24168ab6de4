"""Queries of the approval queue."""

from typing import Any

import msgspec

from custody.approvals.shown_votes import votes_of
from custody.approvals.types import (
    AmountWithoutAsset,
    Approval,
    ApprovalInFull,
    ApprovalQuery,
    ApprovalStats,
    UnknownAsset,
)
from custody.chains.units import USD
from custody.kit import clock, cursors
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import AROUND, Listed, fitting, page_of, reach
from custody.kit.reading import reading
from custody.kit.refs import AgentRef
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.policies.assets import parse_asset
from custody.policies.types import InvalidPolicy, decode_results
from custody.protocol.signer.refusals import ApprovalAbsent
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
_WITH_ORDER = (
    "FROM clock, approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id "
    "WHERE p.tenant_id = $1 AND"
)
_ORDER = "ORDER BY p.requested_at DESC, p.id"
# What never expires is last: nulls are, in this order.
_SOONEST = "ORDER BY p.expires_at, p.requested_at, p.id"
# What an order takes of one asset, as its effects say it. Null: nothing of it.
_AMOUNT = (
    "(SELECT sum((e ->> 'amount')::numeric) FROM json_array_elements(t.effects::json) e "
    "WHERE e ->> 'kind' IN ('transfer', 'approval') AND e ->> 'asset' = ${asset})"
)
_DOLLARS = "(t.moved::json ->> ${asset})::numeric"
# What belongs to the items of a page `p` is looked up for those alone. A person is named while they are a member.
_SHOWN = (
    "SELECT p.*, a.name AS agent_name, t.kind, t.to_address, t.value, t.chain_id, t.status AS tx_status, "
    "t.reference_id, t.effects, t.policy_results, d.name AS resolved_by_name, "
    # A rule that asks for votes is rare: only then is a vote looked for.
    "(SELECT json_agg(json_build_array(r.id, r.config)) FROM policy_rules r WHERE r.tenant_id = $1 "
    "AND r.agent_id = p.agent_id AND r.enabled AND r.type LIKE 'approval-quorum%')::text AS quorums, "
    "(SELECT json_agg(json_build_array(v.user_id, k.fingerprint, v.voted_at) ORDER BY v.voted_at) "
    "FROM approval_votes v JOIN approver_keys k ON k.tenant_id = $1 AND k.id = v.key_id AND k.revoked_at IS NULL "
    "WHERE v.tenant_id = $1 AND v.kind = 'approval' AND v.subject = p.id::text "
    "AND (p.status <> 'pending' OR v.until > service_now()))::text AS votes{more} "
    "FROM p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id "
    "JOIN agents a ON a.tenant_id = p.tenant_id AND a.id = p.agent_id "
    "LEFT JOIN (SELECT m.user_id::text AS user_id, COALESCE(u.name, u.email, u.wallet) AS name "
    "FROM memberships m, user_profile(m.user_id) u WHERE m.tenant_id = $1 "
    "AND m.user_id::text IN (SELECT resolved_by_user_id FROM p)) d ON d.user_id = p.resolved_by_user_id"
)
# How often the agent paid that recipient there before, among its newest thousand orders to that address.
_PAID_BEFORE = (
    "CASE WHEN t.kind IN ('x402', 'solana_x402') THEN (SELECT count(*) FROM (SELECT FROM (SELECT b.id, b.kind, "
    "b.status, b.data FROM transactions b "
    "WHERE b.tenant_id = $1 AND b.agent_id = t.agent_id AND b.to_address = t.to_address "
    "ORDER BY b.created_at DESC, b.id LIMIT 1000) b "
    "WHERE b.id <> t.id AND b.status IN ('signed', 'broadcast', 'confirmed') "
    # Other kinds keep what is no JSON there.
    "AND CASE WHEN b.kind = t.kind THEN b.data::json ->> 'host' IS NOT DISTINCT FROM t.data::json ->> 'host' END "
    "LIMIT 100) paid) END AS paid_before"
)
# Of a row `q`: beside what is long, what a person said of it and the rules that ask for votes.
_SIZE = (
    f"{AROUND} + octet_length(effects) + octet_length(policy_results) + 6 * COALESCE(octet_length(reason), 0) "
    "+ COALESCE(octet_length(quorums), 0) + 4 * COALESCE(octet_length(votes), 0)"
)
# Behind a place: the first condition is the one that an index serves.
_BEHIND = "p.requested_at <= ${at} AND (p.requested_at < ${at} OR p.id > ${id})"


class Asked(msgspec.Struct, frozen=True):
    """The request of a pending item, so that it can be prepared afresh."""

    agent: AgentRef
    kind: str
    order_text: str


async def all_of(pool: Pool, share: TenantSemaphore, tenant: str, query: ApprovalQuery) -> Listed[Approval]:
    """The queue, newest first. What an order says is in no index of the queue, so looking for it is a search."""
    walk = cursors.walk(tenant, ("approvals",), query)
    place = cursors.begin(walk, query)
    arguments: list[Any] = [tenant]
    # Only texts of this file; every value is a parameter.
    where = " AND ".join([_WHERE[query.status], *_filters(query, arguments)])
    of_order = (query.kind, query.reference_id, query.asset) != (None, None, None)
    source = _WITH_ORDER if of_order else _OF_TENANT
    to_count = reach(query.offset, query.limit)
    # In order, so that no more is read than is counted.
    counted = f"{_CLOCK} {to_count.query(f'{source} {where} {_ORDER}')}", *arguments
    if place is not None:
        where += " AND " + _BEHIND.format(at=len(arguments) + 1, id=len(arguments) + 2)
        arguments += [place.at, place.id]
    items = f"SELECT p.*, {_STATUS} AS shown_status {source} {where} {_ORDER} "
    items += f"LIMIT {int(query.limit) + 1} OFFSET {int(query.offset)}"
    by_size = fitting(f"{_select()} {_ORDER}", "requested_at DESC, id", _SIZE, most=query.limit)
    page = f"{_CLOCK}, p AS MATERIALIZED ({items}) {by_size}"
    async with reading(pool, share, tenant) if of_order else tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(page, *arguments)
        more = bool(rows) and rows[0]["found"] > len(rows)
        if place is not None:
            total = place.total_at(len(rows), more=more)
        else:
            total = to_count.total(await connection.fetchval(*counted))
    before = place.before if place else query.offset
    onwards = cursors.onwards(walk, "requested_at", rows, more=more, before=before, total=total)
    return page_of([_approval(row) for row in rows], total, onwards)


async def soonest(pool: Pool, tenant: str, limit: int, offset: int) -> Listed[Approval]:
    """The items that wait; those that expire first come first."""
    where = f"{_OF_TENANT} {_WHERE['pending']}"
    to_count = reach(offset, limit)
    items = f"SELECT p.*, {_STATUS} AS shown_status {where} {_SOONEST} LIMIT {int(limit)} OFFSET {int(offset)}"
    by_size = fitting(f"{_select()} {_SOONEST}", "expires_at, requested_at, id", _SIZE)
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(f"{_CLOCK}, p AS MATERIALIZED ({items}) {by_size}", tenant)
        total = to_count.total(await connection.fetchval(f"{_CLOCK} {to_count.query(where)}", tenant))
    return page_of([_approval(row) for row in rows], total)


async def get(pool: Pool, tenant: str, approval_id: str) -> ApprovalInFull:
    """One item, or ApprovalAbsent."""
    asked = f"SELECT p.*, {_STATUS} AS shown_status {_OF_TENANT} p.id = $2"
    one = f"{_CLOCK}, p AS MATERIALIZED ({asked}) {_select(f', t.order_text, {_PAID_BEFORE}')}"
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(one, tenant, approval_id)
    if row is None:
        raise ApprovalAbsent
    item = msgspec.structs.asdict(_approval(row))
    return ApprovalInFull(**item, order=row["order_text"], paid_before=row["paid_before"])


def _select(more: str = "") -> str:
    """The query of what is shown of the items `p`, with more columns."""
    return _SHOWN.replace("{more}", more)


def _filters(query: ApprovalQuery, arguments: list[Any]) -> list[str]:
    """The conditions beside the status; their values are appended to the arguments."""

    def value(given: Any) -> str:
        arguments.append(given)
        return f"${len(arguments)}"

    found = []
    if query.agent_id is not None:
        found.append(f"p.agent_id = {value(query.agent_id)}")
    if query.kind is not None:
        found.append(f"t.kind = {value(query.kind)}")
    if query.reference_id is not None:
        found.append(f"t.reference_id = {value(query.reference_id)}")
    if query.asset is not None:
        asset = _asset(query.asset)
        amount = (_DOLLARS if asset == USD else _AMOUNT).format(asset=value(asset)[1:])
        least, most = query.min_amount, query.max_amount
        found.append(f"{amount} >= {value(least or '0')}::text::numeric")
        if most is not None:
            found.append(f"{amount} <= {value(most)}::text::numeric")
    elif query.min_amount is not None or query.max_amount is not None:
        raise AmountWithoutAsset
    return found


def _asset(text: str) -> str:
    try:
        return parse_asset(text)
    except InvalidPolicy:
        raise UnknownAsset from None


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
            tenant,
            approval_id,
            tx_id,
            agent,
        )
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
        id=str(row["id"]),
        tx_id=str(row["tx_id"]),
        agent_id=row["agent_id"],
        agent_name=row["agent_name"],
        status=row["shown_status"],
        requested_at=clock.iso(row["requested_at"]),
        resolved_at=clock.iso(row["resolved_at"]) if row["resolved_at"] else None,
        resolved_by=row["resolved_by"],
        resolved_by_user_id=row["resolved_by_user_id"],
        resolved_by_name=row["resolved_by_name"],
        reason=row["reason"],
        comment=row["comment"],
        expires_at=clock.iso(row["expires_at"]) if row["expires_at"] else None,
        release_at=clock.iso(row["release_at"]) if row["release_look_at"] else None,
        kind=row["kind"],
        reference_id=row["reference_id"],
        to_address=row["to_address"],
        value=number(row["value"]),
        chain_id=row["chain_id"],
        tx_status=row["tx_status"],
        effects=msgspec.json.decode(row["effects"]),
        policy_results=decode_results(row["policy_results"]),
        digest=row["digest"].hex(),
        votes=votes_of(row),
    )


async def due(pool: Pool, limit: int) -> list[Any]:
    """Pending items of all tenants whose time is up."""
    rows: list[Any] = await pool.fetch("SELECT * FROM due_approvals($1)", limit)
    return rows


async def claim_releases(pool: Pool, limit: int) -> list[Any]:
    """Pending items of all tenants whose delay is over, with their orders and wallets; asked for later once more."""
    rows: list[Any] = await pool.fetch("SELECT * FROM claim_releases($1)", limit)
    return rows
