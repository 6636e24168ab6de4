"""A page of audit rows, and the checkpoints of the log that they are in."""

import base64
from contextlib import nullcontext

from api.areas.audit import filters, shown, store
from api.areas.audit.filters import BadFilter
from api.areas.audit.types import AuditCheckpoint, AuditPage, AuditQuery, Pagination
from custody.kit import clock, cursors
from custody.kit.alone import Alone
from custody.kit.cursors import Place
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page, Total, page_of, reach
from custody.kit.reading import reading
from custody.kit.tenant_semaphore import TenantSemaphore

_MOST_PAGES = 5000
# A page so many rows behind the first takes as long as a file does.
_FAR = 10_000
# Of files, too.
alone = Alone()


class TooWide(BadFilter):
    """This search would read more rows than one request may; narrow it with dateFrom, dateTo or another filter."""


async def page(pool: Pool, share: TenantSemaphore, tenant: str, query: AuditQuery) -> AuditPage:
    """Rows, newest first."""
    with alone.of(tenant) if (query.page - 1) * query.limit >= _FAR else nullcontext():
        return await _page(pool, share, tenant, query)


async def _page(pool: Pool, share: TenantSemaphore, tenant: str, query: AuditQuery) -> AuditPage:
    wanted, walk = filters.parse(query), cursors.walk(tenant, ("audit",), query)
    place = cursors.begin(walk, query)
    before = place.before if place else (query.page - 1) * query.limit
    skipped, below = (0, place.number) if place else (before, None)
    async with reading(pool, share, tenant) as connection:
        try:
            part = store.Part(skipped, query.limit, below, of_page=True)
            found = await store.page(connection, tenant, wanted, part)
        except store.TooWide:
            raise TooWide from None
        counted = await store.count(connection, tenant, wanted, reach(skipped, query.limit).most, below=below)
    total = counted.rows if place is None or counted.everything else before + counted.rows
    pages = -(-total // query.limit)
    onwards = None
    if found.more and found.rows:
        behind = Place(found.rows[-1].row.seq, before=before + len(found.rows), total=Total(total, not counted.exact))
        onwards = cursors.write(walk, behind)
    pagination = Pagination(
        before // query.limit + 1,
        query.limit,
        total,
        min(pages, _MOST_PAGES),
        not counted.exact,
        not counted.exact or pages > _MOST_PAGES,
        onwards,
    )
    return AuditPage([shown.event(read) for read in found.rows], pagination)


async def checkpoints(pool: Pool, tenant: str, query: Page) -> Listed[AuditCheckpoint]:
    """The checkpoints over rows that this tenant may see, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        first = await store.first_index(connection, tenant)
        if first is None:
            return Listed([], 0)
        rows = await store.checkpoints(connection, tenant, first, query.limit, query.offset)
        total = await store.count_checkpoints(connection, tenant, first, reach(query.offset, query.limit))
    return page_of([_checkpoint(row) for row in rows], total)


def _checkpoint(stored: store.Stored) -> AuditCheckpoint:
    return AuditCheckpoint(
        stored.size, base64.b64encode(stored.root).decode(), stored.note, clock.iso(stored.created_at)
    )
