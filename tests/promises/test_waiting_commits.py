"""A commit that waits for a replica is not done, and no answer says that it is, or that it is not. Promises P2, P9."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import httpx
import pytest

from ops import doctor_database
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres, owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service

pytestmark = pytest.mark.long
# Longer than the api waits for the signer.
DRILL_SECONDS = 15


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """A Postgres whose settings are this file's."""
    with killable_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def running(postgres: KillablePostgres) -> Iterator[Service]:
    """The service that signs on it."""
    with deploy(postgres.database) as service:
        yield service


@pytest.fixture(scope="module")
def tenant(running: Service) -> Iterator[Tenant]:
    """A tenant there."""
    with new_tenant(running) as tenant:
        yield tenant


async def _count(database: Database, agent: str) -> int:
    async with owner_of(database) as rows:
        return int(await rows.fetchval("SELECT count(*) FROM transactions WHERE agent_id = $1", agent))


@asynccontextmanager
async def no_replica(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A primary whose one replica is gone: every commit waits."""
    async with owner_of(database) as owner:
        await owner.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        await owner.execute("SELECT pg_reload_conf()")
        try:
            yield owner
        finally:
            await owner.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await owner.execute("SELECT pg_reload_conf()")


async def _let_go(owner: asyncpg.Connection) -> None:
    """End each wait for a replica as an operator's restart would: what waited is there for all to see."""
    await owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")


def _status_and_code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


async def test_an_order_that_waits_is_not_said_to_be_unsigned(running: Service, tenant: Tenant) -> None:
    agent = tenant.agent()
    assert agent.sign().status_code == 200
    async with no_replica(running.database) as owner:
        finding = await doctor_database.replicas(owner)
        answer = agent.sign()
        ready = httpx.get(f"{running.url}/ready", trust_env=False, timeout=30)

    assert (finding.found, finding.cure is not None) == (
        "none, and every commit waits for one: nothing is signed",
        True,
    )
    assert _status_and_code(answer) == (503, "outcome_unknown")
    assert "Idempotency-Key" in answer.json()["error"]
    assert (ready.status_code, ready.json()["data"]["checks"]["commits"]) == (503, {"ok": False})
    # And it was signed in the end.
    found = 0
    while found != 2:
        found = await _count(running.database, agent.id)
    assert agent.sign().status_code == 200
    eventually(lambda: httpx.get(f"{running.url}/ready", trust_env=False, timeout=30).status_code, 200)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_repetition_is_not_acknowledged_before_the_replica_has_it(
    running: Service, tenant: Tenant, *, ended: bool
) -> None:
    agent, key = tenant.agent(), f"signed once {ended}"
    async with no_replica(running.database) as owner:
        until, codes = time.monotonic() + DRILL_SECONDS, set()
        while time.monotonic() < until:
            codes.add(_status_and_code(agent.sign(key=key)))
            if ended:
                await _let_go(owner)
        # Ended from outside, it is there for all to see, and no replica has it; our processes show it so to nobody.
        assert await _count(running.database, agent.id) == int(ended)
        codes.add(_status_and_code(agent.sign(key=key)))
    assert {status for status, _ in codes} == {503}
    assert "signer_unavailable" not in {code for _, code in codes}

    answers = [agent.sign(key=key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200], [answer.text for answer in answers]
    assert answers[0].json()["data"] == answers[1].json()["data"] == answers[2].json()["data"]
    assert await _count(running.database, agent.id) == 1


async def test_an_agent_is_made_once_though_nobody_was_told(running: Service, tenant: Tenant) -> None:
    wanted, key = {"id": "made-once", "name": "Made once"}, {"Idempotency-Key": "made once"}
    async with no_replica(running.database) as owner:
        first = tenant.post("/agents", json=wanted, headers=key)
        await _let_go(owner)
        second = tenant.post("/agents", json=wanted, headers=key)
    assert {first.status_code, second.status_code} == {503}

    again = tenant.post("/agents", json=wanted, headers=key)
    assert again.status_code == 201, again.text


async def test_a_former_primary_is_away_and_left(running: Service, tenant: Tenant) -> None:
    agent = tenant.agent()
    async with owner_of(running.database) as owner:
        # The connections that there are go on; those that a process opens meanwhile find a database that takes nothing.
        await owner.execute("ALTER DATABASE custody SET default_transaction_read_only = on")
        await owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'custody_signer'")
        refused = agent.sign()
        ready = httpx.get(f"{running.url}/ready", trust_env=False, timeout=30)
        await owner.execute("SET default_transaction_read_only = off")
        await owner.execute("ALTER DATABASE custody RESET default_transaction_read_only")

    assert _status_and_code(refused)[0] == 503, refused.text
    assert ready.status_code == 503
    # No process was restarted, and no connection ended from outside.
    eventually(agent.sign, lambda answer: answer.status_code == 200)
    assert "sealed no more" not in running.logs()
