"""Queries of webhook endpoints, deliveries and published events."""

from collections.abc import Sequence
from typing import Any

import msgspec

from custody.kit import clock, cursors
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.paging import Listed, Page, fitting, page_of, reach
from custody.protocol.identity.refusals import WebhookAbsent
from custody.protocol.identity.webhooks import Delivery, Webhook
from custody.webhooks.envelope import envelope
from custody.webhooks.rows import delivery_of, webhook_of
from custody.webhooks.types import DeliveryQuery, ExportQuery

_LIVING = "WHERE tenant_id = $1 AND deleted_at IS NULL"
_FILTERED = (
    "FROM deliveries WHERE tenant_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3) "
    "AND ($4::text IS NULL OR event = $4) AND ($5::boolean IS NULL OR (error IS NOT NULL) = $5)"
)
_SHOWN = (
    "SELECT id, event, status, attempts, max_attempts, next_retry_at, error IS NOT NULL AS has_error, created_at, "
    f"delivered_at, replayed_from {_FILTERED}"
)
_ORDER = "ORDER BY created_at DESC, id"
_PAGE = f"{_ORDER} LIMIT $6 OFFSET $7"
# The first condition is the one that an index serves.
_BEHIND = "AND created_at <= $8 AND (created_at < $8 OR id > $9)"
_EVENTS = (
    "SELECT number, id, event, agent_id, data, created_at FROM events WHERE tenant_id = $1 AND number > $2 "
    "ORDER BY number LIMIT $3"
)
_NEWEST = "SELECT number FROM events WHERE tenant_id = $1 ORDER BY number DESC LIMIT 1"
_KEPT = "SELECT FROM events WHERE tenant_id = $1 AND number = $2"


class Published(msgspec.Struct, frozen=True):
    """One event with its place in the order of all."""

    number: int
    event: str
    content: bytes


async def get(pool: Pool, tenant: str, webhook: str) -> Webhook:
    """One endpoint; WebhookAbsent if there is none, or none any more."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(f"SELECT * FROM webhook_endpoints {_LIVING} AND id = $2", tenant, webhook)
    if row is None:
        raise WebhookAbsent
    return webhook_of(row)


async def all_of(pool: Pool, tenant: str, page: Page) -> Listed[Webhook]:
    """A tenant's endpoints, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        endpoints = f"SELECT * FROM webhook_endpoints {_LIVING} ORDER BY created_at DESC, id LIMIT $2 OFFSET $3"
        rows = await connection.fetch(fitting(endpoints, "created_at DESC, id"), tenant, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        counted = to_count.query(f"FROM webhook_endpoints {_LIVING}")
        total = to_count.total(await connection.fetchval(counted, tenant))
    return page_of([webhook_of(row) for row in rows], total)


async def deliveries_of(pool: Pool, tenant: str, webhook: str, query: DeliveryQuery | ExportQuery) -> Listed[Delivery]:
    """The deliveries to an endpoint that the filters let through, newest first; WebhookAbsent without the endpoint."""
    which = (tenant, webhook, query.status, query.event_type, query.has_error)
    walk = cursors.walk(tenant, ("deliveries", webhook), query)
    place = cursors.begin(walk, query)
    async with tenant_scope(pool, tenant) as connection:
        if await connection.fetchrow(f"SELECT FROM webhook_endpoints {_LIVING} AND id = $2", tenant, webhook) is None:
            raise WebhookAbsent
        page = (*which, query.limit + 1, query.offset)
        if place is not None:
            found = await connection.fetch(f"{_SHOWN} {_BEHIND} {_PAGE}", *page, place.at, place.id)
            total = place.total_at(min(len(found), query.limit), more=len(found) > query.limit)
        else:
            found = await connection.fetch(f"{_SHOWN} {_PAGE}", *page)
            to_count = reach(query.offset, query.limit)
            total = to_count.total(await connection.fetchval(to_count.query(f"{_FILTERED} {_ORDER}"), *which))
    rows, before = found[: query.limit], place.before if place else query.offset
    onwards = cursors.onwards(walk, "created_at", rows, more=len(found) > len(rows), before=before, total=total)
    return page_of([delivery_of(row) for row in rows], total, onwards)


async def events_after(pool: Pool, tenant: str, number: int, limit: int) -> list[Published]:
    """The next events of a tenant; who has read up to a number has missed nothing before it."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_EVENTS, tenant, number, limit)
    return [_to_published(tenant, row) for row in rows]


async def newest_event(pool: Pool, tenant: str) -> int:
    """The number of the last event, 0 where there is none."""
    async with tenant_scope(pool, tenant) as connection:
        return await _newest(connection, tenant)


async def place_after(pool: Pool, tenant: str, number: int) -> int | None:
    """The same number if its event is still kept, so that everything after it is; else None."""
    async with tenant_scope(pool, tenant) as connection:
        return None if await connection.fetchrow(_KEPT, tenant, number) is None else number


async def _newest(connection: Connection, tenant: str) -> int:
    return await connection.fetchval(_NEWEST, tenant) or 0


def _to_published(tenant: str, row: Any) -> Published:
    content = envelope(
        id=str(row["id"]),
        event=row["event"],
        tenant=tenant,
        agent=row["agent_id"],
        timestamp=clock.iso(row["created_at"]),
        data=row["data"],
    )
    return Published(row["number"], row["event"], content)


async def publish(pool: Pool, limit: int, *told: object) -> int:
    """Number up to so many events of the outbox and make their deliveries; gives back how many.

    `told`: which of them become notices, and in what form, as the SQL function takes it.
    """
    taken: int = await pool.fetchval("SELECT publish_events($1, $2, $3, $4, $5, $6, $7)", limit, *told)
    return taken


async def claim(pool: Pool, room: int, seconds: int, silent: int, endpoints: list[str], rooms: list[int]) -> list[Any]:
    """Claim deliveries that are due, of all tenants, for some seconds; each endpoint has its own room."""
    rows: list[Any] = await pool.fetch(
        "SELECT * FROM claim_deliveries($1, $2, $3, $4, $5)", room, seconds, silent, endpoints, rooms
    )
    return rows


async def settle(pool: Pool, columns: Sequence[Sequence[Any]]) -> set[Any]:
    """Write down how attempts ended, in one statement; gives back the deliveries whose claim was still the newest."""
    rows = await pool.fetch("SELECT deliveries_ended($1, $2, $3, $4, $5, $6, $7)", *columns)
    return {row[0] for row in rows}
