"""The figures of a tenant, what this process still holds included."""

import csv
import io

import msgspec

from custody.idempotency import store
from custody.idempotency.counts import Counts
from custody.idempotency.types import IdempotencyMetrics
from custody.kit.answer_kinds import Document, file_name
from custody.kit.db import Pool


async def read(pool: Pool, counts: Counts, tenant: str) -> IdempotencyMetrics:
    """The present figures; those that other processes counted in this second come with their next flush."""
    await counts.flush(pool)
    return await store.get(pool, tenant)


async def export(pool: Pool, counts: Counts, tenant: str) -> Document:
    """The same as CSV: one row of times and figures."""
    return Document(as_csv(await read(pool, counts, tenant)), "text/csv", name=file_name("idempotency-metrics", "csv"))


def as_csv(metrics: IdempotencyMetrics) -> str:
    """A line of names and a line of values; a time that is not there is empty."""
    row = {
        "generated_at": metrics.generated_at,
        "window_started_at": metrics.window_started_at,
        "last_seen_at": metrics.last_seen_at,
        "ttl_ms": metrics.ttl_ms,
        **msgspec.structs.asdict(metrics.counters),
    }
    text = io.StringIO()
    writer = csv.DictWriter(text, row)
    writer.writeheader()
    writer.writerow(row)
    return text.getvalue()
