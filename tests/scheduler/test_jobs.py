"""Jobs of one scheduler and of two: shared, alone, failing, killed. Promise P9."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from prometheus_client import REGISTRY

from custody.chains.chains_file import load
from custody.chains.rpc import Rpc
from custody.kit.db import open_pool
from custody.ports import Ports
from custody.protocol.client import SignerClient
from scheduler.jobs import Job
from scheduler.run import RUNS, Runner
from tests.expiry.race import judge
from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.scheduler.replicas import Replica, replicas

DUE = "UPDATE approvals SET expires_at = service_now() WHERE id = ANY ($1)"


@pytest.fixture
async def pair(database: Database, owner: asyncpg.Connection) -> AsyncIterator[list[Runner]]:
    """Two schedulers that run jobs on one database."""
    rpc = Rpc()
    pools = [await open_pool(database.urls["scheduler"], size=2) for _ in range(2)]
    yield [Runner(Ports(pool, SignerClient("/nowhere", "scheduler"), load({}), rpc)) for pool in pools]
    for pool in pools:
        await pool.close()
    await rpc.close()
    await owner.execute("DELETE FROM jobs WHERE name LIKE 'test-%'")


class Work:
    """A job that goes on until it is let go, and knows how often it ran at once."""

    def __init__(self) -> None:
        self.began, self.at_once, self.most = 0, 0, 0
        self.let_go = asyncio.Event()

    async def __call__(self, _ports: Ports) -> int:
        self.began += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.let_go.wait()
        self.at_once -= 1
        return 3


@pytest.mark.parametrize(("alone", "most"), [(True, 1), (False, 2)])
async def test_a_job_runs_in_one_scheduler_at_a_time_only_if_it_must(
    pair: list[Runner], alone: bool, most: int
) -> None:
    work = Work()
    job = Job(f"test-{most}", 1.0, work, alone=alone)

    first = asyncio.ensure_future(pair[0].run(job))
    await soon(lambda: work.began == 1)
    second = asyncio.ensure_future(pair[1].run(job))
    await soon(lambda: second.done() or work.began == 2)
    work.let_go.set()
    await asyncio.gather(first, second)
    await pair[1].run(job)

    assert (work.most, work.began) == (most, most + 1)


async def test_a_scheduler_that_dies_leaves_no_lock_behind(pair: list[Runner], database: Database) -> None:
    work = Work()
    work.let_go.set()
    job = Job("test-dead", 1.0, work, alone=True)
    dead = await asyncpg.connect(database.urls["scheduler"])
    await dead.execute("BEGIN")
    assert await dead.fetchval("SELECT pg_try_advisory_xact_lock(hashtextextended('custody-job:test-dead', 0))")

    await pair[0].run(job)
    while_held = work.began
    dead.terminate()

    async def begin() -> int:
        await pair[0].run(job)
        return work.began

    await soon(begin, 1)

    assert while_held == 0


async def test_a_job_that_fails_is_counted_and_stops_no_other(pair: list[Runner], owner: asyncpg.Connection) -> None:
    work = Work()
    work.let_go.set()

    async def bad(_ports: Ports) -> int:
        raise LookupError("nothing good")

    before = _count("test-bad", "failed")
    for job in (Job("test-bad", 1.0, bad, alone=True), Job("test-good", 1.0, work, alone=True)):
        await pair[0].run(job)
    await pair[0].run(Job("test-bad", 1.0, bad, alone=True))

    assert _count("test-bad", "failed") == before + 2
    assert work.began == 1
    rows = {row["name"]: row for row in await owner.fetch("SELECT * FROM jobs WHERE name LIKE 'test-%'")}
    assert (rows["test-bad"]["last_success_at"], rows["test-good"]["last_failure_at"]) == (None, None)
    assert rows["test-bad"]["last_failure_at"] is not None
    assert (rows["test-good"]["last_success_at"] is not None, rows["test-good"]["last_items"]) == (True, 3)


async def test_ready_tells_of_jobs_and_is_ready_whatever_became_of_them(
    as_nobody: Client, owner: asyncpg.Connection
) -> None:
    # The deployment serves before its scheduler has done anything.
    eventually(lambda: as_nobody.get("/ready").json()["data"]["checks"]["jobs"].get("expire", {}).get("lastSuccessAt"))
    await owner.execute("SELECT job_ended('test-never', false, 0, 0), job_ended('test-once', true, 1, 1)")
    await owner.execute("UPDATE jobs SET last_success_at = '2020-01-01' WHERE name = 'test-once'")

    answer = as_nobody.get("/ready")

    await owner.execute("DELETE FROM jobs WHERE name LIKE 'test-%'")
    jobs = answer.json()["data"]["checks"]["jobs"]
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "ready")
    assert jobs["test-never"] == {"lastSuccessAt": None}
    assert jobs["test-once"] == {"lastSuccessAt": "2020-01-01T00:00:00.000Z"}
    assert jobs["expire"]["lastSuccessAt"] > "2020-01-01T00:00:00.000Z"


@pytest.fixture
def second(service: Service) -> Iterator[Replica]:
    """One more scheduler beside the deployment's own, at work."""
    with replicas(service, 1) as [one]:
        one.ready()
        yield one


async def test_two_schedulers_share_the_work_and_one_may_be_killed(
    second: Replica, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    cautious = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    approvals = [cautious.sign().json()["data"]["approvalId"] for _ in range(30)]
    metrics = second.figures()

    await owner.execute(DUE, approvals)
    second.kill()
    eventually(lambda: tenant.ok("GET", "/approvals/stats")["expired"], 30)
    eventually(lambda: len([a for a in tenant.ok("GET", "/approvals?status=all") if a["txStatus"] == "rejected"]), 30)

    outcomes, _, problems = await judge(owner, tenant, approvals, {})
    assert (outcomes, problems) == ({"expired": 30}, [])
    assert 'custody_job_last_success_timestamp_seconds{task="expire"}' in metrics
    assert re.search(r'custody_job_seconds_count{task="expire"} [1-9]', metrics)


async def test_a_job_that_never_ended_well_has_a_time_that_says_so(pair: list[Runner]) -> None:
    Runner(pair[0]._ports, [Job("test-never", 1.0, Work())])

    at = REGISTRY.get_sample_value("custody_job_last_success_timestamp_seconds", {"task": "test-never"})

    assert at == 0


def _count(job: str, outcome: str) -> float:
    return RUNS.labels(job, outcome)._value.get()
