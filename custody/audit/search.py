"""A page of audit rows, and the checkpoints of the log that they are in. Spec 2/10."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import msgspec

from custody.audit import filters, leaf, store
from custody.audit.filters import BadFilter
from custody.audit.types import AuditCheckpoint, AuditEvent, AuditPage, AuditQuery, Pagination
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.errors import TooMany
from custody.kit.paging import Listed, Page

_MOST_PAGES = 5000
# A page so many rows behind the first takes as long as a file does.
_FAR = 10_000
_reading: set[str] = set()


class TooWide(BadFilter):
    """That would read more rows than one request may; narrow it with dateFrom, dateTo or another filter."""


class ReadingAlready(TooMany):
    """A file or a page far back is being read for this tenant; ask again when it has come."""


@contextmanager
def alone(tenant: str) -> Iterator[None]:
    """One long read of a tenant at a time, so that nobody takes the connections of all. Raises ReadingAlready."""
    if tenant in _reading:
        raise ReadingAlready(retry_after=1)
    _reading.add(tenant)
    try:
        yield
    finally:
        _reading.discard(tenant)


async def page(pool: Pool, tenant: str, query: AuditQuery) -> AuditPage:
    """Rows, newest first."""
    wanted, offset = filters.wanted(query), (query.page - 1) * query.limit
    with alone(tenant) if offset >= _FAR else nullcontext():
        return await _page(pool, tenant, wanted, query, offset)


async def _page(pool: Pool, tenant: str, wanted: filters.Wanted, query: AuditQuery, offset: int) -> AuditPage:
    async with tenant_scope(pool, tenant) as connection:
        try:
            rows = await store.page(connection, tenant, wanted, offset, query.limit)
        except store.TooWide:
            raise TooWide from None
        total = await store.count(connection, tenant, wanted, offset + query.limit + store.COUNTED_BEHIND)
    pages = min(-(-total // query.limit), _MOST_PAGES)
    return AuditPage([_event(row) for row in rows], Pagination(query.page, query.limit, total, pages))


async def checkpoints(pool: Pool, tenant: str, query: Page) -> Listed:
    """The checkpoints over rows that this tenant may see, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        first = await store.first_index(connection, tenant)
        if first is None:
            return Listed([], 0)
        rows = await store.checkpoints(connection, tenant, first, query.limit, query.offset)
        total = await store.count_checkpoints(connection, tenant, first)
    return Listed([_checkpoint(row) for row in rows], total)


def _event(row: leaf.Row) -> AuditEvent:
    return AuditEvent(
        id=str(row.seq), seq=row.seq, actor_type=row.actor_type, actor_id=row.actor_id, action=row.action,
        resource_type=row.resource_type, resource_id=row.resource_id, metadata=msgspec.json.decode(row.metadata),
        ip_address=row.ip_address, user_agent=row.user_agent, request_id=row.request_id,
        created_at=row.created_at[:-4] + "Z",
    )  # fmt: skip


def _checkpoint(stored: store.Stored) -> AuditCheckpoint:
    return AuditCheckpoint(
        stored.size, base64.b64encode(stored.root).decode(), stored.note, clock.iso(stored.created_at)
    )
