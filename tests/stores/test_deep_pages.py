"""Reads of a list's page: its own rows, however many come before and behind it; and the reads of a search."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from custody.approvals import store as approvals
from custody.approvals.types import ApprovalQuery
from custody.kit.db import Pool
from custody.kit.paging import COUNTED_BEYOND, Total
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.transactions import store
from custody.transactions.types import HistoryQuery, TenantTransactionQuery, TransactionQuery
from custody.webhooks import store as deliveries
from custody.webhooks.types import DeliveryQuery
from tests.fixtures.postgres import Database, in_database
from tests.stores.test_look_ups import BUSY, NAME, ORDERS, drop_database, make_database, rows_read

# So many rows lie before the page, and twice as many behind it: with few behind, reading them all is as cheap.
PAGE, DEEP = 50, 26

_APPROVALS = """
INSERT INTO approvals (tenant_id, id, tx_id, agent_id, digest, mac, requested_at)
SELECT tenant_id, gen_random_uuid(), id, agent_id, '', '', created_at FROM transactions WHERE agent_id = 'agent-707'
"""
_ENDPOINT = """
INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms)
VALUES ('tenant-7', '00000000-0000-4000-8000-000000000007', 'https://example.com/', 5, 1000)
"""
_DELIVERIES = f"""
INSERT INTO deliveries (tenant_id, endpoint_id, event, url, max_attempts, created_at)
SELECT 'tenant-7', '00000000-0000-4000-8000-000000000007', 'tx.signed', 'https://example.com/', 6,
       service_now() - make_interval(secs => n)
  FROM generate_series(1, {ORDERS}) n
"""


@pytest.fixture(scope="module")
def long(database: Database) -> Iterator[Database]:
    """Lists of four thousand rows of one tenant, among those of others."""
    name = f"{NAME}_{uuid.uuid4().hex[:8]}"
    urls = {who: in_database(url, name) for who, url in database.urls.items()}
    asyncio.run(make_database(database, name, _APPROVALS, _ENDPOINT, _DELIVERIES, analyzed=True))
    yield Database(in_database(database.owner_url, name), urls)
    asyncio.run(drop_database(database, name))


def _transactions(pool: Pool, cursor: str | None = None) -> Awaitable[Any]:
    return store.search_tenant(pool, TenantSemaphore(), BUSY.tenant, TenantTransactionQuery(limit=PAGE, cursor=cursor))


def _history(pool: Pool, cursor: str | None = None) -> Awaitable[Any]:
    return store.history(pool, BUSY, HistoryQuery(limit=PAGE, cursor=cursor))


def _approvals(pool: Pool, cursor: str | None = None) -> Awaitable[Any]:
    query = ApprovalQuery(limit=PAGE, status="all", cursor=cursor)
    return approvals.all_of(pool, TenantSemaphore(), BUSY.tenant, query)


def _pending(pool: Pool, cursor: str | None = None) -> Awaitable[Any]:
    return approvals.all_of(pool, TenantSemaphore(), BUSY.tenant, ApprovalQuery(limit=PAGE, cursor=cursor))


def _deliveries(pool: Pool, cursor: str | None = None) -> Awaitable[Any]:
    webhook = "00000000-0000-4000-8000-000000000007"
    return deliveries.deliveries_of(pool, BUSY.tenant, webhook, DeliveryQuery(limit=PAGE, cursor=cursor))


@pytest.mark.parametrize(
    ("read", "table"),
    [
        (_transactions, "transactions"),
        (_history, "transactions"),
        (_approvals, "approvals"),
        (_pending, "approvals"),
        (_deliveries, "deliveries"),
    ],
)
async def test_a_deep_page_reads_its_own_rows_and_no_others(
    long: Database, read: Callable[..., Awaitable[Any]], table: str
) -> None:
    connection = await asyncpg.connect(long.urls["api"])
    pool = SimpleNamespace(acquire=lambda: nullcontext(connection))
    try:
        cursor = None
        for _ in range(DEEP):
            cursor = (await read(pool, cursor)).next_cursor
            assert cursor

        # One behind the page tells whether there are more, and sorting those of one moment takes a few.
        assert PAGE < await rows_read(connection, lambda: read(pool, cursor), table) < 2 * PAGE
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("read", "table"),
    [
        # The tenant's own list is two thirds of this table: reading the whole is as cheap.
        (_history, "transactions"),
        (_approvals, "approvals"),
        (_pending, "approvals"),
        (_deliveries, "deliveries"),
    ],
)
async def test_a_first_page_counts_no_further_than_a_thousand_rows(
    long: Database, read: Callable[..., Awaitable[Any]], table: str
) -> None:
    connection = await asyncpg.connect(long.urls["api"])
    pool = SimpleNamespace(acquire=lambda: nullcontext(connection))
    try:
        # The page, what is counted, and one more of each; sorting those of one moment takes a few.
        assert await rows_read(connection, lambda: read(pool), table) < PAGE + (PAGE + COUNTED_BEYOND) + PAGE
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (TransactionQuery(status="failed"), 0),
        (TransactionQuery(to_address="0xAb77"), 1),
    ],
    ids=str,
)
async def test_a_search_reads_what_it_finds(long: Database, query: TransactionQuery, rows: int) -> None:
    connection = await asyncpg.connect(long.urls["api"])
    pool = SimpleNamespace(acquire=lambda: nullcontext(connection))
    try:
        found = await store.search(pool, BUSY, query)

        assert (len(found.rows), found.total) == (rows, Total(rows))
        # What is found is read for the page and for the count.
        assert await rows_read(connection, lambda: store.search(pool, BUSY, query)) <= 2 * rows + 1
    finally:
        await connection.close()
