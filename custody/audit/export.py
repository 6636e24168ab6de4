"""Audit rows as a file: CSV for reading, NDJSON for whoever wants proof. Decisions 7, docs/audit.md.

NDJSON has sealed rows only, in the order of the log, and ends with the newest checkpoint and the hashes that lead from
the rows to it. Rows that were written a moment ago are waited for.
"""

import asyncio
import base64
from collections.abc import Sequence

import msgspec

from custody.audit import filters, leaf, store, tree
from custody.audit.filters import BadFilter, Wanted
from custody.audit.lines import LastLine, RowLine, written
from custody.audit.search import TooWide, alone
from custody.audit.types import AuditExportQuery
from custody.kit.answers import Download
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.errors import Conflict
from custody.kit.spreadsheet import as_csv

ROWS = 10_000
_CURSOR = "X-Next-Cursor"
# Sealing runs every second; if it does not come in this time, what is sealed is given.
_WAITS, _WAIT_SECONDS = 30, 0.1


class NotSealedYet(Conflict):
    """Nothing of this log is sealed yet; try again in a few seconds."""


class LogDamaged(Conflict):
    """The log's stored hashes are incomplete, so nothing can be proven; tell the operator."""


async def export(pool: Pool, tenant: str, query: AuditExportQuery) -> Download:
    """At most 10,000 rows; a header says where the next call goes on."""
    wanted = filters.wanted(query)
    try:
        if query.format == "csv":
            with alone(tenant):
                return await _csv(pool, tenant, wanted, query)
        await _until_sealed(pool, tenant)
        with alone(tenant):
            return await _ndjson(pool, tenant, wanted, query)
    except store.TooWide:
        raise TooWide from None


async def _csv(pool: Pool, tenant: str, wanted: Wanted, query: AuditExportQuery) -> Download:
    below = None if query.cursor is None else int(query.cursor)
    async with tenant_scope(pool, tenant) as connection:
        rows = await store.page(connection, tenant, wanted, 0, ROWS + 1, below=below)
    shown = rows[:ROWS]
    headers = {_CURSOR: str(shown[-1].seq)} if len(rows) > ROWS else {}
    # Ten thousand rows take a while to write; other requests go on meanwhile.
    content = await asyncio.to_thread(as_csv, leaf.COLUMNS, (msgspec.structs.astuple(row) for row in shown))
    return Download(content, "text/csv", headers)


async def _until_sealed(pool: Pool, tenant: str) -> None:
    async with tenant_scope(pool, tenant) as connection:
        newest = await store.newest_seq(connection, tenant)
    for _ in range(_WAITS):
        async with tenant_scope(pool, tenant) as connection:
            if not await store.waits(connection, tenant, newest):
                return
        await asyncio.sleep(_WAIT_SECONDS)


async def _ndjson(pool: Pool, tenant: str, wanted: Wanted, query: AuditExportQuery) -> Download:
    async with tenant_scope(pool, tenant) as connection:
        head = await store.newest_checkpoint(connection, tenant)
        first = await store.first_index(connection, tenant)
        if head is None or first is None:
            raise NotSealedYet
        if query.since is not None and query.since > head.size:
            raise BadFilter("since is larger than the log: it is no checkpoint of this log.", fields=["since"])
        begin = max(first, int(query.cursor or 0))
        if begin > head.size:
            raise BadFilter("cursor lies behind the end of the log.", fields=["cursor"])
        rows = await store.log(connection, tenant, wanted, begin, head.size, ROWS + 1)
        shown = rows[:ROWS]
        ranges = tree.left_out(head.size, [row.index for row in shown])
        onwards = [] if query.since is None else tree.between(query.since, head.size)
        known = await _hashes(connection, tenant, ranges + onwards)
    more = str(shown[-1].index + 1) if len(rows) > ROWS else None
    last = LastLine(
        checkpoint=head.note, begin=begin, filtered=not wanted.everything, next=more, proof=_proof(ranges, known),
        since=query.since, consistency=_proof(onwards, known),
    )  # fmt: skip
    content = await asyncio.to_thread(_written, shown, last)
    return Download(content, "application/x-ndjson", {} if more is None else {_CURSOR: more})


async def _hashes(connection: Connection, tenant: str, ranges: Sequence[tree.Range]) -> dict[tree.Range, bytes]:
    found = await store.hashes(connection, tenant, tree.places(ranges))
    try:
        return {(low, high): tree.hash_of(low, high, found.__getitem__) for low, high in ranges}
    except KeyError:
        raise LogDamaged from None


def _proof(ranges: Sequence[tree.Range], known: dict[tree.Range, bytes]) -> list[str]:
    return [base64.b64encode(known[one]).decode() for one in ranges]


def _written(rows: Sequence[store.Sealed], last: LastLine) -> str:
    lines = [written(RowLine(index=sealed.index, row=sealed.row)) for sealed in rows]
    return b"".join([*lines, written(last)]).decode()
