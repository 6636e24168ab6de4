"""Retention: old rows go, a batch at a time and in nobody's way; young and needed ones stay. Decision 0027."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from custody.chains.chains_file import load
from custody.chains.rpc import Rpc
from custody.kit.db import open_pool
from custody.ports import Ports
from custody.protocol.client import SignerClient
from ops import places
from scheduler.expiry.retain import NotAllDeleted, retain
from tests.expiry.rows import GROUND, KEPT, LINES, Line, count_rows
from tests.fixtures.callers import Tenant
from tests.fixtures.deployments import database_apart, owner_of
from tests.fixtures.postgres import Database

PAGE = Path(__file__).parents[2] / "docs/database.md"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_CLOCK = (
    "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$SELECT '{}'::timestamptz$$"
)


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """A database whose clock and rows are this file's own."""
    return database_apart(postgres_home, f"{worker_id}_retention")


@pytest.fixture
async def old_ground(apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """Its owner, in a transaction of which nothing stays, on a ground for rows."""
    async with owner_of(apart) as connection:
        within = connection.transaction()
        await within.start()
        await connection.execute(GROUND)
        yield connection
        await within.rollback()


async def count_gone(owner: asyncpg.Connection, what: str, moment: datetime, limit: int = 100) -> int:
    """Count the rows of a line that go at a moment, by the hand of the scheduler."""
    await owner.execute(_CLOCK.format(moment.isoformat()))
    await owner.execute("SET LOCAL ROLE custody_scheduler")
    count: int = await owner.fetchval("SELECT retain($1, $2)", what, limit)
    await owner.execute("RESET ROLE")
    return count


@pytest.mark.parametrize("line", LINES, ids=[f"{number}-{line.what}" for number, line in enumerate(LINES)])
async def test_a_row_goes_at_its_age_and_not_before(old_ground: asyncpg.Connection, line: Line) -> None:
    await old_ground.execute(line.row.replace("$1", f"'{MOMENT.isoformat()}'::timestamptz"))
    younger = MOMENT + timedelta(hours=2)
    await old_ground.execute(line.row.replace("$1", f"'{younger.isoformat()}'::timestamptz"))

    assert await count_gone(old_ground, line.what, MOMENT + line.age) == 0
    assert await count_gone(old_ground, line.what, MOMENT + line.age + timedelta(milliseconds=1)) == 1
    assert await count_gone(old_ground, line.what, MOMENT + line.age + timedelta(hours=1)) == 0
    assert await count_gone(old_ground, line.what, younger + line.age + timedelta(milliseconds=1)) == 1


async def test_every_line_is_tried_here(old_ground: asyncpg.Connection) -> None:
    lines = await old_ground.fetch("SELECT what FROM retention")

    assert {row["what"] for row in lines} == {line.what for line in LINES}


async def test_live_or_referenced_rows_are_kept(old_ground: asyncpg.Connection) -> None:
    for row in KEPT.values():
        await old_ground.execute(row.replace("$1", f"'{MOMENT.isoformat()}'::timestamptz"))
    before = await count_rows(old_ground)

    lines = [row["what"] for row in await old_ground.fetch("SELECT what FROM retention ORDER BY place")]
    went = [await count_gone(old_ground, what, MOMENT + timedelta(days=3650)) for what in lines]

    assert (await count_rows(old_ground), sum(went)) == (before, 0)
    assert {"audit": 1, "transactions": 1, "approvals": 1, "nonces": 1}.items() <= before.items()


@pytest.mark.parametrize("what", sorted({line.what for line in LINES}))
async def test_an_index_finds_what_is_old(old_ground: asyncpg.Connection, what: str) -> None:
    line = await old_ground.fetchrow("SELECT relation, old FROM retention WHERE what = $1", what)
    await old_ground.execute("SET LOCAL enable_seqscan = off")

    [[plan]] = await old_ground.fetch(
        f"EXPLAIN (FORMAT JSON) SELECT r.ctid FROM {line['relation']} r WHERE "
        + line["old"].replace("$1", "'2026-01-01'::timestamptz")
    )

    # A table that is looked through as a whole would say so, whatever it costs.
    assert "Seq Scan" not in plan, plan
    assert "Index Cond" in plan, plan


async def test_an_order_that_was_never_signed_loses_its_bytes_after_a_month(old_ground: asyncpg.Connection) -> None:
    for number, status in enumerate(("rejected", "pending_approval", "rejected")):
        await old_ground.execute(
            "INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, data, broadcast, "
            "order_text, digest, effects, policy_results, policy_version, answer, created_at) "
            "VALUES ('t', $1, 'a', $1, 'evm', 'evm', $2, '0xab', false, '{}', 'd', '[]', '[]', 1, '', $3)",
            f"00000000-0000-4000-8000-00000000010{number}",
            status,
            MOMENT + timedelta(hours=2) * (number > 1),
        )

    counts = []
    for later in (timedelta(), timedelta(milliseconds=1), timedelta(hours=1)):
        await old_ground.execute(_CLOCK.format((MOMENT + timedelta(days=30) + later).isoformat()))
        await old_ground.execute("SET LOCAL ROLE custody_scheduler")
        counts.append(await old_ground.fetchval("SELECT empty_rejected(10)"))
        await old_ground.execute("RESET ROLE")

    assert counts == [0, 1, 0]
    rows = await old_ground.fetch("SELECT order_text, data, digest, effects FROM transactions ORDER BY id")
    assert [tuple(row) for row in rows] == [
        ("", None, b"d", "[]"),
        ("{}", "0xab", b"d", "[]"),
        ("{}", "0xab", b"d", "[]"),
    ]
    await old_ground.execute("SET LOCAL enable_seqscan = off")
    [[plan]] = await old_ground.fetch(
        "EXPLAIN (FORMAT JSON) SELECT FROM transactions WHERE status = 'rejected' AND order_text <> '' "
        "AND created_at < '2026-01-01'"
    )
    assert "transactions_rejected" in plan


async def test_a_batch_is_no_larger_than_asked(old_ground: asyncpg.Connection) -> None:
    await old_ground.execute(
        "INSERT INTO attempts SELECT n::text, 1, $1::timestamptz FROM generate_series(1, 25) n", MOMENT
    )

    assert [await count_gone(old_ground, "attempts", MOMENT + timedelta(1), 10) for _ in range(4)] == [10, 10, 5, 0]


async def test_a_row_that_somebody_holds_is_left_and_nobody_waits(apart: Database) -> None:
    async with owner_of(apart) as one, owner_of(apart) as other, owner_of(apart) as third:
        await one.execute(
            "INSERT INTO attempts SELECT n::text, 1, $1::timestamptz FROM generate_series(1, 3) n", MOMENT
        )
        async with other.transaction():
            await other.execute("SELECT FROM attempts WHERE subject = '2' FOR UPDATE")
            await third.execute("SET lock_timeout = '1s'")

            async with third.transaction():
                while_held = await third.fetchval("SELECT retain('attempts', 100)")
                # And the other way round: what is being deleted is in nobody's way who reads.
                assert await one.fetchval("SELECT count(*) FROM attempts") == 3

        assert (while_held, await third.fetchval("SELECT retain('attempts', 100)")) == (2, 1)


async def test_the_job_obeys_every_line_and_says_which_it_could_not(apart: Database) -> None:
    async with owner_of(apart) as owner:
        await owner.execute(
            "INSERT INTO attempts SELECT n::text, 1, $1::timestamptz FROM generate_series(1, 1200) n", MOMENT
        )
        ports = Ports(
            await open_pool(apart.urls["scheduler"], size=1), SignerClient("/nowhere", "scheduler"), load({}), Rpc()
        )
        assert await retain(ports) == 1200
        await owner.execute("INSERT INTO attempts VALUES ('again', 1, $1)", MOMENT)
        await owner.execute("INSERT INTO retention (what, relation, old) VALUES ('broken', 'attempts', 'r.nothing')")
        await owner.execute("UPDATE retention SET old = old WHERE what = 'broken'")

        with pytest.raises(NotAllDeleted, match=r"\Abroken\Z"):
            await retain(ports)

        assert await owner.fetchval("SELECT count(*) FROM attempts") == 0
        await owner.execute("DELETE FROM retention WHERE what = 'broken'")
        await ports.pool.close()
        await ports.rpc.close()


async def test_no_process_says_what_is_old(apart: Database) -> None:
    for process in ("api", "signer", "scheduler", "proxy"):
        connection = await asyncpg.connect(apart.urls[process])
        for act in (
            "INSERT INTO retention (what, relation, old) VALUES ('x', 'audit', 'true')",
            "DELETE FROM retention",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(act)
        if process != "scheduler":
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch("SELECT retain('attempts', 1)")
        await connection.close()


async def test_the_page_says_of_every_table_how_long_it_is_kept(old_ground: asyncpg.Connection) -> None:
    section = PAGE.read_text().split("## What is kept how long\n", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(
        r"`(\w+)`", " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
    )

    assert sorted(set(listed)) == sorted(listed)
    assert set(listed) == set(await count_rows(old_ground)) - {"tortoise_migrations", "applied_sql"}


async def test_a_route_of_a_secret_whose_value_is_gone_can_still_be_changed(
    tenant: Tenant, owner: asyncpg.Connection
) -> None:
    secret = tenant.ok("POST", "/secrets", {"name": "old", "value": "v"})["id"]
    fields = {"secretId": secret, "hostPattern": "api.example.com", "injectAs": "header", "injectKey": "x-key"}
    route = tenant.ok("POST", "/secrets/routes", fields)["id"]
    await owner.execute("UPDATE secrets SET expires_at = now() - interval '31 days' WHERE id = $1", secret)
    await owner.execute("DELETE FROM sealed WHERE owner = $1", secret)

    changed = tenant.ok("PUT", f"/secrets/routes/{route}", {"injectKey": "x-other"})

    assert changed["injectKey"] == "x-other"
