"""Queries of notification channels and their messages, and what the scheduler does with them."""

from collections.abc import Sequence
from typing import Any

from custody.kit import cursors
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page, fitting, page_of, reach
from custody.notices.rows import channel_of, notice_of
from custody.notices.types import Notice, NoticeQuery, NotificationChannel
from custody.protocol.identity.refusals import ChannelAbsent, NoticeAbsent

# A person's own ones are theirs alone; those of the tenant are nobody's.
_LIVING = "WHERE tenant_id = $1 AND user_id IS NOT DISTINCT FROM $2::uuid AND deleted_at IS NULL"
_FILTERED = "FROM notices WHERE tenant_id = $1 AND channel_id = $2 AND ($3::text IS NULL OR status = $3)"
_SHOWN = (
    f"SELECT id, purpose, status, attempts, max_attempts, next_retry_at, error, created_at, delivered_at {_FILTERED}"
)
_ORDER = "ORDER BY created_at DESC, id"
_PAGE = f"{_ORDER} LIMIT $4 OFFSET $5"
# The first condition is the one that an index serves.
_BEHIND = "AND created_at <= $6 AND (created_at < $6 OR id > $7)"
_CLAIM = "SELECT * FROM claim_notices($1, $2, $3, $4)"
_ENDED = "SELECT notices_ended($1, $2, $3, $4, $5, $6, $7)"


async def get(pool: Pool, tenant: str, channel: str, user: str | None = None) -> NotificationChannel:
    """One channel of the tenant, or of this person; ChannelAbsent if there is none, or none any more."""
    async with tenant_scope(pool, tenant) as connection:
        found = f"SELECT * FROM notification_channels {_LIVING} AND id = $3"
        row = await connection.fetchrow(found, tenant, user, channel)
    if row is None:
        raise ChannelAbsent
    return channel_of(row)


async def all_of(pool: Pool, tenant: str, page: Page, user: str | None = None) -> Listed[NotificationChannel]:
    """The channels of the tenant, or of this person there, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        found = f"SELECT * FROM notification_channels {_LIVING} ORDER BY created_at DESC, id LIMIT $3 OFFSET $4"
        rows = await connection.fetch(fitting(found, "created_at DESC, id"), tenant, user, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        counted = to_count.query(f"FROM notification_channels {_LIVING}")
        total = to_count.total(await connection.fetchval(counted, tenant, user))
    return page_of([channel_of(row) for row in rows], total)


async def notice(pool: Pool, tenant: str, notice_id: str) -> Notice:
    """One message; NoticeAbsent if there is none any more."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT * FROM notices WHERE tenant_id = $1 AND id = $2", tenant, notice_id)
    if row is None:
        raise NoticeAbsent
    return notice_of(row)


async def notices_of(pool: Pool, tenant: str, channel: str, query: NoticeQuery) -> Listed[Notice]:
    """The messages to a channel, newest first; ChannelAbsent without the channel."""
    which = (tenant, channel, query.status)
    walk = cursors.walk(tenant, ("notices", channel), query)
    place = cursors.begin(walk, query)
    async with tenant_scope(pool, tenant) as connection:
        living = f"SELECT FROM notification_channels {_LIVING} AND id = $3"
        if await connection.fetchrow(living, tenant, None, channel) is None:
            raise ChannelAbsent
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
    return page_of([notice_of(row) for row in rows], total, onwards)


async def claim(pool: Pool, limit: int, seconds: int, mails: int, shown: int) -> Sequence[Any]:
    """Take up due messages, for so long."""
    return await pool.fetch(_CLAIM, limit, seconds, mails, shown)  # type: ignore[no-any-return]


async def settle(pool: Pool, columns: Sequence[Sequence[Any]]) -> set[Any]:
    """Write down how attempts ended; the ids that were looked at."""
    return {row[0] for row in await pool.fetch(_ENDED, *columns)}
