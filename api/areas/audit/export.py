"""Audit rows as a file: CSV for reading, NDJSON with proofs. See docs/audit.md.

NDJSON has sealed rows only, in the order of the log, and ends with the newest checkpoint and the hashes that lead from
the rows to it. Rows that were written a moment ago are waited for.
"""

import asyncio
import base64
from collections.abc import Sequence

import msgspec

from api.areas.audit import filters, shown, store
from api.areas.audit.filters import BadFilter, Wanted
from api.areas.audit.search import TooWide, alone
from api.areas.audit.types import AuditExportQuery
from custody.audit import leaf, tree
from custody.audit.lines import LastLine, RawRowLine, RowLine, encode_line
from custody.kit.answer_kinds import Document, file_name
from custody.kit.cursors import NEXT_CURSOR
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.errors import Conflict
from custody.kit.reading import reading
from custody.kit.spreadsheet import as_csv
from custody.kit.tenant_semaphore import TenantSemaphore

ROWS = 10_000
# Sealing runs every second; if it does not come in this time, what is sealed is given.
_WAITS, _WAIT_SECONDS = 30, 0.1


class NotSealedYet(Conflict):
    """This log has no sealed rows yet; retry in a few seconds."""


class LogDamaged(Conflict):
    """The stored hashes of this log are incomplete, so no proof can be made; contact the operator."""


async def export(pool: Pool, share: TenantSemaphore, tenant: str, query: AuditExportQuery) -> Document:
    """At most 10,000 rows; a header says where the next call goes on."""
    wanted = filters.parse(query)
    try:
        if query.format == "csv":
            with alone.of(tenant):
                return await _csv(pool, share, tenant, wanted, query)
        await _until_sealed(pool, tenant)
        with alone.of(tenant):
            return await _ndjson(pool, share, tenant, wanted, query)
    except store.TooWide:
        raise TooWide from None


async def _csv(pool: Pool, share: TenantSemaphore, tenant: str, wanted: Wanted, query: AuditExportQuery) -> Document:
    below = None if query.cursor is None else int(query.cursor)
    async with reading(pool, share, tenant) as connection:
        found = await store.page(connection, tenant, wanted, store.Part(0, ROWS, below))
    headers = {NEXT_CURSOR: str(found.rows[-1].row.seq)} if found.more else {}
    # Ten thousand rows take a while to write; other requests go on meanwhile.
    content = await asyncio.to_thread(as_csv, (*leaf.COLUMNS, "unreadable"), map(_cells, found.rows))
    return Document(content, "text/csv", headers, file_name("audit", "csv"))


def _cells(read: leaf.Read) -> tuple[object, ...]:
    return (*msgspec.structs.astuple(read.row), " ".join(shown.unreadable_in(read)))


async def _until_sealed(pool: Pool, tenant: str) -> None:
    async with tenant_scope(pool, tenant) as connection:
        newest = await store.newest_seq(connection, tenant)
    for _ in range(_WAITS):
        async with tenant_scope(pool, tenant) as connection:
            if not await store.waits(connection, tenant, newest):
                return
        await asyncio.sleep(_WAIT_SECONDS)


async def _ndjson(pool: Pool, share: TenantSemaphore, tenant: str, wanted: Wanted, query: AuditExportQuery) -> Document:
    async with reading(pool, share, tenant) as connection:
        head = await store.newest_checkpoint(connection, tenant)
        first = await store.first_index(connection, tenant)
        if head is None or first is None:
            raise NotSealedYet
        if query.since is not None and query.since > head.size:
            raise BadFilter("since is larger than the log: not a checkpoint of this log.", fields=["since"])
        begin = max(first, int(query.cursor or 0))
        if begin > head.size:
            raise BadFilter("cursor is beyond the end of the log.", fields=["cursor"])
        found = await store.log(connection, tenant, wanted, begin, head.size, ROWS)
        ranges = tree.left_out(head.size, [row.index for row in found.rows])
        onwards = [] if query.since is None else tree.between(query.since, head.size)
        known = await _hashes(connection, tenant, ranges + onwards)
    more = str(found.rows[-1].index + 1) if found.more else None
    last = LastLine(
        checkpoint=head.note,
        begin=begin,
        filtered=not wanted.everything,
        next=more,
        proof=_proof(ranges, known),
        since=query.since,
        consistency=_proof(onwards, known),
    )
    content = await asyncio.to_thread(_text, found.rows, last)
    headers = {} if more is None else {NEXT_CURSOR: more}
    return Document(content, "application/x-ndjson", headers, file_name("audit", "ndjson"))


async def _hashes(connection: Connection, tenant: str, ranges: Sequence[tree.Range]) -> dict[tree.Range, bytes]:
    found = await store.hashes(connection, tenant, tree.places(ranges))
    try:
        return {(low, high): tree.hash_of(low, high, found.__getitem__) for low, high in ranges}
    except KeyError:
        raise LogDamaged from None


def _proof(ranges: Sequence[tree.Range], known: dict[tree.Range, bytes]) -> list[str]:
    return [base64.b64encode(known[one]).decode() for one in ranges]


def _text(rows: Sequence[store.Sealed], last: LastLine) -> str:
    return b"".join([*(encode_line(_line(sealed)) for sealed in rows), encode_line(last)]).decode()


def _line(sealed: store.Sealed) -> RowLine | RawRowLine:
    read = sealed.read
    if not read.unreadable:
        return RowLine(index=sealed.index, row=read.row)
    encoded = base64.b64encode(sealed.hash).decode()
    return RawRowLine(index=sealed.index, hash=encoded, unreadable=list(read.unreadable), row=read.row)
