"""Searches of the audit trail have their share of the connections: others read on, however long a search takes."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AsyncExitStack, closing

import pytest

from custody.kit import db
from custody.kit.reading import STATEMENT_SECONDS, SearchesBusy, SearchingAlready, SearchTooSlow, reading
from custody.kit.tenant_semaphore import MAX_WAITING, ONE_IN, TenantSemaphore
from tests.audit.sealed import Log
from tests.fixtures.deployments import owner_of

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'audit'::regclass"
CONNECTIONS = 8


@pytest.fixture
async def pool(log: Log) -> AsyncIterator[db.Pool]:
    """As many connections as the api has."""
    opened = await db.open_pool(log.service.database.urls["api"], size=CONNECTIONS, least=1)
    yield opened
    await opened.close()


async def test_searches_of_two_tenants_that_hang_leave_the_others_their_connections(log: Log) -> None:
    with closing(Log(log.service, acts=1)) as other, closing(Log(log.service, acts=1)) as third:
        async with owner_of(log.service.database) as owner:
            held = owner.transaction()
            await held.start()
            await owner.execute("LOCK TABLE audit IN ACCESS EXCLUSIVE MODE")
            with ThreadPoolExecutor(24) as threads:
                asked = [
                    threads.submit(one.owner.get, "/audit/events", params={"metadata.kind": "evm"})
                    for one in (log, other) * (MAX_WAITING + 3)
                ]
                # Of each tenant one search runs, eight wait, and further ones are refused at once.
                refused = [ended.result() for _, ended in zip(range(4), as_completed(asked), strict=False)]
                hanging = await owner.fetchval(WAITING)
                read = await asyncio.to_thread(third.owner.get, "/agents", timeout=10)
                await held.rollback()
                came = [one.result() for one in asked]

    assert [one.json()["data"]["code"] for one in refused] == ["searching_already"] * 4
    assert all("dateFrom" in one.json()["error"] and int(one.headers["retry-after"]) >= 1 for one in refused)
    assert hanging <= CONNECTIONS // ONE_IN
    assert read.status_code == 200
    assert sorted(one.status_code for one in came) == [200] * (len(asked) - 4) + [429] * 4


async def test_a_tenant_has_one_turn_and_the_next_tenant_is_not_behind_its_queue(pool: db.Pool) -> None:
    share, searched, began = TenantSemaphore(), [], asyncio.Event()

    async def hold(tenant: str, until: asyncio.Event) -> None:
        async with reading(pool, share, tenant):
            searched.append(tenant)
            began.set()
            await until.wait()

    end = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(MAX_WAITING + 1):
            tasks.create_task(hold("greedy", end))
        await began.wait()
        with pytest.raises(SearchingAlready):
            await hold("greedy", end)
        async with reading(pool, share, "modest"):
            assert searched == ["greedy"]
        end.set()
    assert searched == ["greedy"] * (MAX_WAITING + 1)


async def search(pool: db.Pool, share: TenantSemaphore, statement: str) -> object:
    """Run a statement of a search and return what it gives."""
    async with reading(pool, share, "tenant") as connection:
        return await connection.fetchval(statement)


async def test_a_search_that_finds_no_free_slot_is_told_when_to_retry(pool: db.Pool) -> None:
    share = TenantSemaphore(wait_seconds=0.01)
    async with AsyncExitStack() as stack:
        for number in range(CONNECTIONS // ONE_IN):
            await stack.enter_async_context(reading(pool, share, f"tenant-{number}"))
        with pytest.raises(SearchesBusy):
            await search(pool, share, "SELECT 1")
    assert await search(pool, share, "SELECT 1") == 1


async def test_a_search_that_takes_too_long_is_ended(pool: db.Pool) -> None:
    share = TenantSemaphore()
    assert await search(pool, share, "SHOW statement_timeout") == f"{STATEMENT_SECONDS}s"
    with pytest.raises(SearchTooSlow, match="dateFrom"):
        await too_slow(pool, share)
    # The connection is as good as before, and nobody else's statements are bounded so.
    assert await search(pool, share, "SELECT 1") == 1
    async with db.tenant_scope(pool, "tenant") as other:
        assert await other.fetchval("SHOW statement_timeout") == "30s"


async def too_slow(pool: db.Pool, share: TenantSemaphore) -> None:
    """A search that is ended; sooner than others, so that nobody waits for it here."""
    async with reading(pool, share, "tenant") as connection:
        await connection.execute("SET LOCAL statement_timeout = '10ms'")
        await connection.execute("SELECT pg_sleep(60)")
