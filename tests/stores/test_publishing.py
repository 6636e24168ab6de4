"""Guarantees of the scheduler's functions for events and deliveries by themselves, under its own role."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from ops import places
from tests.fixtures.deployments import database_apart, owner_of
from tests.fixtures.postgres import Database

APPEND = """
SELECT set_config('custody.tenant', $1, true),
       outbox_append(NULL, json_build_array(json_build_object('event', $2::text, 'data', $3::text::json)))
"""
CLAIM = "SELECT * FROM claim_deliveries($1, $2, $3, $4, $5)"
ENDED = "SELECT deliveries_ended($1, $2, $3, $4, $5, $6, $7)"
EVENTS = "SELECT number, event, data FROM events WHERE tenant_id = $1 ORDER BY number"
DELIVERY = "SELECT status, attempts, next_retry_at, error FROM deliveries WHERE tenant_id = $1"


@pytest.fixture(scope="module")
def alone(postgres_home: places.Home, worker_id: str) -> Database:
    """A database without processes, so that nobody else publishes."""
    return database_apart(postgres_home, f"{worker_id}_publishing")


@pytest.fixture
async def owner(alone: Database) -> AsyncIterator[asyncpg.Connection]:
    """The owner."""
    async with owner_of(alone) as connection:
        yield connection


@pytest.fixture
async def scheduler(alone: Database) -> AsyncIterator[asyncpg.Connection]:
    """The scheduler's own connection."""
    connection = await asyncpg.connect(alone.urls["scheduler"])
    yield connection
    await connection.close()


async def tenant_of(owner: asyncpg.Connection) -> str:
    tenant = f"tenant-{uuid.uuid4().hex[:12]}"
    await owner.execute("INSERT INTO tenants (id, name) VALUES ($1, 'A tenant')", tenant)
    return tenant


async def endpoint_of(owner: asyncpg.Connection, tenant: str, retries: int = 0) -> uuid.UUID:
    made = uuid.uuid4()
    await owner.execute(
        "INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms) "
        "VALUES ($1, $2, 'https://receiver.example/', $3, 1000)",
        tenant,
        made,
        retries,
    )
    return made


async def happens(connection: asyncpg.Connection, tenant: str, data: str = "{}", event: str = "tx.signed") -> None:
    async with connection.transaction():
        await connection.execute(APPEND, tenant, event, data)


async def publish(scheduler: asyncpg.Connection, limit: int = 100) -> int:
    return int(await scheduler.fetchval("SELECT publish_events($1)", limit))


async def claim(scheduler: asyncpg.Connection, *, limit: int = 100, room: int = 10, rooms: Any = ()) -> list[Any]:
    named = dict(rooms)
    return list(await scheduler.fetch(CLAIM, limit, 30, room, list(named), list(named.values())))


async def end(scheduler: asyncpg.Connection, row: Any, outcome: str, error: str | None = None, wait: float = 60) -> Any:
    columns = ([row["tenant_id"]], [row["id"]], [row["attempt"]], [outcome], [error], [None], [wait])
    return [found[0] for found in await scheduler.fetch(ENDED, *columns)]


async def test_events_are_numbered_in_the_order_in_which_they_are_published(
    owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    one, other = await tenant_of(owner), await tenant_of(owner)
    for n in range(5):
        await happens(owner, one, f'{{"n":{n}}}')
        await happens(owner, other, f'{{"n":{n}}}')

    taken = [await publish(scheduler, 4) for _ in range(4)]

    assert taken == [4, 4, 2, 0]
    for tenant in (one, other):
        assert [row["data"] for row in await owner.fetch(EVENTS, tenant)] == [f'{{"n":{n}}}' for n in range(5)]
    assert await owner.fetchval("SELECT count(*) FROM outbox") == 0


async def test_an_act_that_commits_late_is_published_later_and_never_below_a_number_that_was_read(
    alone: Database, owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant = await tenant_of(owner)
    async with owner_of(alone) as slow:
        late = slow.transaction()
        await late.start()
        await slow.execute(APPEND, tenant, "tx.pending", "{}")
        await happens(owner, tenant)
        await publish(scheduler)
        [first] = await owner.fetch(EVENTS, tenant)
        await late.commit()
        await publish(scheduler)

    both = await owner.fetch(EVENTS, tenant)
    assert [row["event"] for row in both] == ["tx.signed", "tx.pending"]
    assert both[0]["number"] == first["number"] < both[1]["number"]


async def test_readers_are_told_whose_events_there_are(
    alone: Database, owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant, told = await tenant_of(owner), asyncio.Queue[str]()
    api = await asyncpg.connect(alone.urls["api"])
    await api.add_listener("custody_events", lambda *said: told.put_nowait(said[3]))
    await happens(owner, tenant)
    await happens(owner, tenant)
    await publish(scheduler)

    assert await asyncio.wait_for(told.get(), 60) == tenant
    assert told.empty()
    await api.close()


async def test_deleting_a_tenant_deletes_its_events_and_a_recreated_one_reads_none(
    owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant, stays = await tenant_of(owner), await tenant_of(owner)
    await endpoint_of(owner, tenant)
    for one in (tenant, stays):
        await happens(owner, one)
    await publish(scheduler)
    for one in (tenant, stays):
        await happens(owner, one)

    await owner.execute("DELETE FROM tenants WHERE id = $1", tenant)
    await happens(owner, tenant)  # an act that ended after its tenant
    await publish(scheduler)
    await owner.execute("INSERT INTO tenants (id, name) VALUES ($1, 'Anew')", tenant)
    await publish(scheduler)

    counts = [len(await owner.fetch(EVENTS, one)) for one in (tenant, stays)]
    assert counts == [0, 2]
    assert await owner.fetchval("SELECT count(*) FROM outbox") == 0
    assert await owner.fetchval("SELECT count(*) FROM deliveries WHERE tenant_id = $1", tenant) == 0


async def test_publishing_and_a_deletion_wait_for_each_other_without_a_knot(
    alone: Database, owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant = await tenant_of(owner)
    await happens(owner, tenant)
    async with owner_of(alone) as deleting:
        deletion = deleting.transaction()
        await deletion.start()
        # As `delete_tenant` begins.
        await deleting.execute("SELECT FROM tenants WHERE id = $1 FOR UPDATE", tenant)
        publishing = asyncio.ensure_future(publish(scheduler))
        while not await owner.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):
            assert not publishing.done()
        await deleting.execute("DELETE FROM tenants WHERE id = $1", tenant)
        await deletion.commit()

    assert await publishing == 0
    assert await owner.fetch(EVENTS, tenant) == []


async def test_a_claim_takes_no_more_than_there_is_room_for_and_nobody_elses(
    owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant = await tenant_of(owner)
    narrow, wide = await endpoint_of(owner, tenant), await endpoint_of(owner, tenant)
    for _ in range(4):
        await happens(owner, tenant)
    await publish(scheduler)

    first = await claim(scheduler, rooms={narrow: 1, wide: 3})
    second = await claim(scheduler, rooms={narrow: 0, wide: 0})
    third = await claim(scheduler)

    assert sorted(row["endpoint_id"] for row in first) == sorted([narrow, wide, wide, wide])
    assert second == []
    assert len(third) == 4
    assert len({row["id"] for row in (*first, *third)}) == 8
    await owner.execute("DELETE FROM tenants WHERE id = $1", tenant)


@pytest.mark.parametrize(
    ("outcome", "retries", "after"),
    [
        ("delivered", 1, ("delivered", 1, False)),
        ("failed", 1, ("failed", 1, True)),
        ("failed", 0, ("failed", 1, False)),
        ("gone", 1, ("failed", 1, False)),
        ("unsent", 1, ("pending", 0, True)),
    ],
)
async def test_an_outcome_settles_the_attempt_that_it_is_of(
    owner: asyncpg.Connection, scheduler: asyncpg.Connection, outcome: str, retries: int, after: Any
) -> None:
    tenant = await tenant_of(owner)
    await endpoint_of(owner, tenant, retries)
    await happens(owner, tenant)
    await publish(scheduler)
    [row] = await claim(scheduler)

    looked_at = await end(scheduler, row, outcome)

    [found] = await owner.fetch(DELIVERY, tenant)
    assert looked_at == [row["id"]]
    assert (found["status"], found["attempts"], found["next_retry_at"] is not None) == after
    await owner.execute("DELETE FROM tenants WHERE id = $1", tenant)


async def test_a_result_after_the_claim_ended_changes_nothing(
    owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant = await tenant_of(owner)
    await endpoint_of(owner, tenant, 3)
    await happens(owner, tenant)
    await publish(scheduler)
    [stale] = await claim(scheduler)
    await owner.execute("UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1", tenant)
    [fresh] = await claim(scheduler)

    await end(scheduler, stale, "failed", "status")
    [between] = await owner.fetch(DELIVERY, tenant)
    await end(scheduler, fresh, "delivered")
    [found] = await owner.fetch(DELIVERY, tenant)

    assert (stale["attempt"], fresh["attempt"]) == (1, 2)
    assert (between["status"], between["error"]) == ("processing", None)
    assert (found["status"], found["attempts"]) == ("delivered", 2)
    await owner.execute("DELETE FROM tenants WHERE id = $1", tenant)


async def test_an_outcome_does_not_wait_for_who_holds_the_row(
    alone: Database, owner: asyncpg.Connection, scheduler: asyncpg.Connection
) -> None:
    tenant = await tenant_of(owner)
    await endpoint_of(owner, tenant)
    await happens(owner, tenant)
    await publish(scheduler)
    [row] = await claim(scheduler)
    async with owner_of(alone) as other, other.transaction():
        await other.execute("SELECT FROM deliveries WHERE id = $1 FOR UPDATE", row["id"])
        held = await end(scheduler, row, "delivered")
    free = await end(scheduler, row, "delivered")

    assert (held, free) == ([], [row["id"]])
    await owner.execute("DELETE FROM tenants WHERE id = $1", tenant)
