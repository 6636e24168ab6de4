"""Transactions of a tenant as a file."""

import asyncio
from collections.abc import Sequence

import msgspec

from api.areas.transactions.redaction import shown_to
from custody.kit.alone import Alone
from custody.kit.answer_kinds import Document, file_name
from custody.kit.callers import TenantCaller
from custody.kit.cursors import NEXT_CURSOR
from custody.kit.db import Pool
from custody.kit.paging import Total, total_headers
from custody.kit.spreadsheet import as_csv
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.transactions import store
from custody.transactions.types import ListedTransaction, TenantTransactionQuery, TransactionPage, TransactionSummary

ROWS = 10_000
# Of a file, which ends before it and goes on at its cursor: half of what answers of one tenant may hold.
MAX_BYTES = 8 * 1024 * 1024
# Read and written at once; other requests go on in between.
PIECE = 500
_FIELDS = msgspec.structs.fields(TransactionSummary)
_alone = Alone()


async def export(pool: Pool, share: TenantSemaphore, caller: TenantCaller, query: TenantTransactionQuery) -> Document:
    """At most 10,000 rows and 8 MiB, newest first; a header says where the next file begins."""
    with _alone.of(caller.tenant):
        most = query.limit or ROWS
        texts = [as_csv([field.encode_name for field in _FIELDS], ())]
        total, rows, size = Total(0), 0, 0
        while True:
            piece = msgspec.structs.replace(query, limit=min(PIECE, most - rows))
            found = await store.search_tenant(pool, share, caller.tenant, piece)
            shown = shown_to(caller, TransactionPage(found.rows, 0, False, PIECE, found.before, None))
            text = await asyncio.to_thread(_csv, shown.transactions)
            if rows and size + len(text) > MAX_BYTES:
                # Read once more by the next file: its cursor is still the one in front of this piece.
                break
            total, rows, size = found.total, rows + len(found.rows), size + len(text)
            texts.append(text)
            query = msgspec.structs.replace(query, offset=0, cursor=found.next_cursor)
            if found.next_cursor is None or rows >= most:
                break
    headers = total_headers(total) | ({NEXT_CURSOR: query.cursor} if query.cursor else {})
    return Document("".join(texts), "text/csv", headers, file_name("transactions", "csv"))


def _csv(rows: Sequence[ListedTransaction]) -> str:
    return as_csv((), ([_cell(getattr(row, field.name)) for field in _FIELDS] for row in rows))


def _cell(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, list) else value
