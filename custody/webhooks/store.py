"""Queries of webhook endpoints, deliveries and published events."""

from typing import Any

import msgspec
from msgspec import UNSET

from custody.kit import clock
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.paging import Listed, Page
from custody.webhooks.envelope import envelope
from custody.webhooks.names import SUBSCRIBABLE
from custody.webhooks.types import Delivery, DeliveryQuery, ExportQuery, Webhook, WebhookAbsent

_LIVING = "WHERE tenant_id = $1 AND deleted_at IS NULL"
_FILTERED = (
    "FROM deliveries WHERE tenant_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3) "
    "AND ($4::text IS NULL OR event = $4) AND ($5::boolean IS NULL OR (error IS NOT NULL) = $5)"
)
_SHOWN = (
    "SELECT id, event, status, attempts, max_attempts, next_retry_at, error IS NOT NULL AS has_error, created_at, "
    f"delivered_at, replayed_from {_FILTERED} ORDER BY created_at DESC, id LIMIT $6 OFFSET $7"
)
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


async def all_of(pool: Pool, tenant: str, page: Page) -> Listed:
    """A tenant's endpoints, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(
            f"SELECT * FROM webhook_endpoints {_LIVING} ORDER BY created_at DESC, id LIMIT $2 OFFSET $3",
            tenant, page.limit, page.offset,
        )  # fmt: skip
        total = await connection.fetchval(f"SELECT count(*) FROM webhook_endpoints {_LIVING}", tenant)
    return Listed([_webhook(row) for row in rows], total)


async def deliveries_of(pool: Pool, tenant: str, webhook: str, query: DeliveryQuery | ExportQuery) -> Listed:
    """The deliveries to an endpoint that the filters let through, newest first; WebhookAbsent without the endpoint."""
    which = (tenant, webhook, query.status, query.event_type, query.has_error)
    async with tenant_scope(pool, tenant) as connection:
        if await connection.fetchrow(f"SELECT FROM webhook_endpoints {_LIVING} AND id = $2", tenant, webhook) is None:
            raise WebhookAbsent
        rows = await connection.fetch(_SHOWN, *which, query.limit, query.offset)
        total = await connection.fetchval(f"SELECT count(*) {_FILTERED}", *which)
    return Listed([_delivery(row) for row in rows], total)


async def events_after(pool: Pool, tenant: str, number: int, limit: int) -> list[Published]:
    """The next events of a tenant; who has read up to a number has missed nothing before it."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_EVENTS, tenant, number, limit)
    return [_published(tenant, row) for row in rows]


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


def _published(tenant: str, row: Any) -> Published:
    content = envelope(
        id=str(row["id"]), event=row["event"], tenant=tenant, agent=row["agent_id"],
        timestamp=clock.iso(row["created_at"]), data=row["data"],
    )  # fmt: skip
    return Published(row["number"], row["event"], content)


def _webhook(row: Any) -> Webhook:
    return Webhook(
        id=str(row["id"]), tenant_id=row["tenant_id"], url=row["url"],
        events=list(SUBSCRIBABLE) if row["events"] is None else row["events"], enabled=row["enabled"],
        disabled_reason=row["disabled_reason"], max_retries=row["max_retries"],
        retry_backoff_ms=row["retry_backoff_ms"], description=row["description"],
        created_at=clock.iso(row["created_at"]),
    )  # fmt: skip


def _delivery(row: Any) -> Delivery:
    return Delivery(
        id=str(row["id"]), event_type=row["event"], status=row["status"], attempts=row["attempts"],
        max_attempts=row["max_attempts"], next_retry_at=_moment(row["next_retry_at"]), has_error=row["has_error"],
        created_at=clock.iso(row["created_at"]), delivered_at=_moment(row["delivered_at"]),
        replayed_from_delivery_id=UNSET if row["replayed_from"] is None else str(row["replayed_from"]),
    )  # fmt: skip


def _moment(at: Any) -> str | None:
    return None if at is None else clock.iso(at)
