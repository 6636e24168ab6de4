"""P2, P3, P9: whatever dies, what was acknowledged is there, once, and everything comes back without a hand."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.fixtures.callers import Agent, Tenant, new_tenant
from tests.fixtures.deployments import KillablePostgres, deployed, killable_postgres, owner_of, partner_of
from tests.fixtures.server import Service
from tests.outside.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from tests.promises.kills import killed, postgres_stopped
from tests.promises.oracle import violations

CUTS = 8


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """A Postgres of this file's own, as durable as in production."""
    with killable_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def running(postgres: KillablePostgres) -> Iterator[Service]:
    """All processes on it."""
    with deployed(postgres.database, "signer", "api", "scheduler") as service:
        yield service


@pytest.fixture
def holder(running: Service) -> Iterator[Tenant]:
    """A tenant of this test's own."""
    with new_tenant(running) as tenant:
        yield tenant


@pytest.mark.parametrize("name", ["signer", "api"])
def test_a_killed_process_loses_nothing_acknowledged(running: Service, holder: Tenant, name: str) -> None:
    survived = killed(running, holder, name, 10, print)

    print(survived)
    assert survived.problems == []


def test_a_postgres_stopped_at_once_loses_nothing_acknowledged(
    postgres: KillablePostgres, running: Service, holder: Tenant
) -> None:
    survived = postgres_stopped(postgres, running, holder, 2, print)

    print(survived)
    assert survived.problems == []
    assert [name for name, process in running.processes.items() if process.poll() is not None] == []


def test_the_scheduler_works_again_after_postgres_was_stopped(
    postgres: KillablePostgres, running: Service, holder: Tenant
) -> None:
    agent = holder.agent()
    postgres.stop_immediately()
    postgres.start_again()
    running.wait_until_ready()

    tx_id = agent.sign().json()["data"]["txId"]

    asyncio.run(_claimed_by_the_scheduler(running, tx_id))


@pytest.mark.parametrize("how", ["before it is sent", "while it runs", "before its reply"])
async def test_a_connection_cut_at_the_commit_signs_once(cut_off: tuple[CuttingProxy, Tenant], how: Cut) -> None:
    proxy, tenant = cut_off
    agent, before = tenant.agent(), proxy.cuts

    answers = [_signed_with_a_cut(proxy, agent, how, f"{how} {turn}") for turn in range(CUTS)]
    again = [agent.sign(key=f"{how} {turn}") for turn in range(CUTS)]

    assert proxy.cuts - before == CUTS
    assert [answer.json()["data"] for answer in again] == answers
    assert {answer.headers["Idempotency-Replayed"] for answer in again} == {"true"}
    assert agent.ok("GET", f"/vault/{agent.id}/history?limit=100")[CUTS:] == []


async def test_an_approval_cut_at_the_commit_is_given_once(cut_off: tuple[CuttingProxy, Tenant]) -> None: ...
