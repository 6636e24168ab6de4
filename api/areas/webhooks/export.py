"""The deliveries to a webhook as a file."""

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from custody.kit.answer_kinds import Document, file_name
from custody.kit.cursors import NEXT_CURSOR
from custody.kit.db import Pool
from custody.kit.spreadsheet import as_csv
from custody.protocol.identity.webhooks import Delivery
from custody.webhooks import store
from custody.webhooks.types import ExportQuery

_FIELDS = msgspec.structs.fields(Delivery)


async def export(pool: Pool, tenant: str, webhook: str, query: ExportQuery) -> Document:
    """The same fields as in the list, as CSV."""
    found = await store.deliveries_of(pool, tenant, webhook, query)
    # Ten thousand rows take a while to write; other requests go on meanwhile.
    headers = {NEXT_CURSOR: found.next_cursor} if found.next_cursor else {}
    return Document(await asyncio.to_thread(_table, found.rows), "text/csv", headers, file_name("deliveries", "csv"))


def _table(deliveries: Iterable[Delivery]) -> str:
    return as_csv([field.encode_name for field in _FIELDS], map(_row, deliveries))


def _row(delivery: Delivery) -> list[object]:
    values = [getattr(delivery, field.name) for field in _FIELDS]
    return [None if value is UNSET else value for value in values]
