"""P2, P3, P9: whatever dies, what was acknowledged is there, once, and everything comes back without a hand."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import Tenant, new_tenant, rule
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres, owner_of, partner_of
from tests.fixtures.eventually import soon
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.outside.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from tests.promises.kills import kill, postgres_stopped
from tests.promises.oracle import violations
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import with_signer

pytestmark = pytest.mark.long

CUTS: tuple[Cut, ...] = ("before it is sent", "arrives late", "while it runs", "before its reply")
TURNS = 8
type CutOff = tuple[CuttingProxy, Tenant, Service]


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    """A Postgres of this file's own, as durable as in production."""
    with killable_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def running(postgres: KillablePostgres) -> Iterator[Service]:
    """All processes on it."""
    with deploy(postgres.database, "signer", "identity", "api", "scheduler", really=True) as service:
        yield service


@pytest.fixture
def holder(running: Service) -> Iterator[Tenant]:
    """A tenant of this test's own."""
    with new_tenant(running) as tenant:
        yield tenant


@pytest.mark.parametrize("name", ["signer", "api"])
def test_a_killed_process_loses_nothing_acknowledged(running: Service, holder: Tenant, name: str) -> None:
    survived = kill(running, holder, name, 4, print)

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

    signed = agent.sign().json()["data"]

    assert asyncio.run(_claims(running, signed["txId"])) > 0


@pytest.mark.parametrize("how", CUTS)
async def test_a_connection_cut_at_the_commit_signs_once(
    cut_off: tuple[CuttingProxy, Tenant, Service], how: Cut
) -> None:
    proxy, tenant, _ = cut_off
    agent, before = tenant.agent(), proxy.cuts

    answers = [_cut(proxy, how, agent.sign, key=f"{how} {turn}") for turn in range(TURNS)]
    again = [agent.sign(key=f"{how} {turn}") for turn in range(TURNS)]

    assert proxy.cuts - before == TURNS
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json()["data"] for answer in again] == [answer.json()["data"] for answer in answers]
    assert {answer.headers.get("Idempotency-Replayed") for answer in again} == {"true"}
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == TURNS


@pytest.mark.parametrize("how", CUTS)
async def test_an_approval_cut_at_the_commit_signs_once(
    cut_off: tuple[CuttingProxy, Tenant, Service], how: Cut
) -> None:
    proxy, tenant, _ = cut_off
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    item = agent.sign().json()["data"]["approvalId"]

    answer = _cut(proxy, how, tenant.post, f"/approvals/{item}/approve", json={})
    again = tenant.post(f"/approvals/{item}/approve", json={})

    assert (answer.status_code, again.status_code) == (200, 409)
    [only] = agent.ok("GET", f"/vault/{agent.id}/history")
    assert only["txHash"] == answer.json()["data"]["txHash"]


@pytest.mark.parametrize("how", CUTS)
async def test_a_psbt_cut_at_the_commit_is_signed_and_counted_once(cut_off: CutOff, how: Cut) -> None:
    proxy, tenant, service = cut_off
    owner = member(service, tenant, "owner", mfa=True)
    payer = with_signer(owner, tenant.agent(LISTED), "sign_transaction")
    psbts = [payment(payer, 10_000, inputs=2) for _ in range(TURNS)]

    answers = [_cut(proxy, how, sign_psbt, payer, psbt, key=f"{how} {turn}") for turn, psbt in enumerate(psbts)]
    again = [sign_psbt(payer, psbt, key=f"{how} {turn}") for turn, psbt in enumerate(psbts)]

    owner.close()
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json()["data"] for answer in again] == [answer.json()["data"] for answer in answers]
    async with owner_of(service.database) as rows:
        assert await rows.fetchval("SELECT count(*) FROM outpoints WHERE agent_id = $1", payer.id) == 2 * TURNS
        for counted in ("psbt_spends", "spend"):
            total = await rows.fetchval(f"SELECT sum(amount) FROM {counted} WHERE agent_id = $1", payer.id)
            assert total == 11_000 * TURNS


@pytest.fixture(scope="module")
def cut_off(running: Service) -> Iterator[CutOff]:
    """A second signer whose wire to Postgres can be cut, and a tenant that it serves."""
    with (
        cutting_proxy(running.database.urls["signer"]) as (proxy, url),
        partner_of(running, SERVICE_DATABASE_URL_SIGNER=url) as service,
        new_tenant(service) as tenant,
    ):
        yield proxy, tenant, service
        assert asyncio.run(_judge(service, tenant)) == []


def _cut(
    proxy: CuttingProxy, how: Cut, ask: Callable[..., httpx.Response], *given: Any, **named: Any
) -> httpx.Response:
    proxy.cut_next(how)
    return ask(*given, **named)


async def _judge(service: Service, tenant: Tenant) -> list[str]:
    async with owner_of(service.database) as owner:
        return await violations(owner, [tenant.id])


async def _claims(service: Service, tx_id: str) -> int:
    """Count how often the scheduler tried to send this, within a bounded time."""
    async with owner_of(service.database) as owner:
        await owner.execute("UPDATE transactions SET broadcast = true, resend_at = service_now() WHERE id = $1", tx_id)
        return int(
            await soon(lambda: owner.fetchval("SELECT resends FROM transactions WHERE id = $1", tx_id), seconds=30)
        )
