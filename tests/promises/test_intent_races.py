"""Intents under concurrency and death: one outcome, one signature, spend counted once. Promises P1, P2, P9."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, AsyncClient, Tenant, new_tenant, rule
from tests.fixtures.deployments import deploy, killable_postgres, owner_of, partner_of
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.thorough import THOROUGH
from tests.outside.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from tests.promises.oracle import violations
from tests.routes.intents.makers import act, propose, status_and_code, transfer
from tests.routes.intents.test_send_calls import may_send, pay, send

ROUNDS, MANY_ROUNDS = 40, 150 if THOROUGH == 1 else 1_000
ENDS = {"execute": "executed", "cancel": "canceled", "expire": "expired", "fail": "failed"}
CUTS: tuple[Cut, ...] = ("before it is sent", "arrives late", "while it runs", "before its reply")


class Race:
    """An owner who acts on intents of one agent, several acts at once."""

    def __init__(self, tenant: Tenant, owner: Person, agent: Agent) -> None:
        self.tenant, self.owner, self.agent = tenant, owner, agent
        self.ends: Counter[str] = Counter()

    async def run(self, rounds: int) -> None:
        """So many intents, each with two executions and one other end at the same moment."""
        headers = {"Authorization": self.owner.headers["Authorization"]}
        async with AsyncClient(base_url=self.owner.base_url, headers=headers, timeout=60) as http:
            for number in range(rounds):
                if number % 100 == 99:
                    self.owner.step_up()
                    http.headers["Authorization"] = self.owner.headers["Authorization"]
                await self._round(http)

    async def _round(self, http: AsyncClient) -> None:
        intent = propose(self.tenant, transfer(self.agent, 1))["id"]
        await http.post(f"/intents/{intent}/authorize", json={})
        acts = ["execute", "execute", random.choice([*ENDS])]
        random.shuffle(acts)
        answers = await asyncio.gather(*(http.post(f"/intents/{intent}/{one}", json={}) for one in acts))
        done = [one for one, answer in zip(acts, answers, strict=True) if answer.status_code == 200]
        found = (await http.get(f"/intents/{intent}")).json()["data"]
        assert len(done) == 1, [answer.text for answer in answers]
        assert found["status"] == ENDS[done[0]]
        assert {status_and_code(answer)[0] for answer in answers if answer.status_code != 200} == {409}
        self.ends[found["status"]] += 1


async def _race(service: Service, tenant: Tenant, owner: Person, rounds: int) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay=str(rounds)))
    race = Race(tenant, owner, agent)
    await race.run(rounds)

    executed = race.ends["executed"]
    assert len(race.ends) > 1, "no other end ever came first: nothing raced"
    async with owner_of(service.database) as rows:
        signed = await rows.fetchval("SELECT count(*) FROM transactions WHERE agent_id = $1", agent.id)
        spent = await rows.fetchval("SELECT coalesce(sum(amount), 0)::int FROM spend WHERE agent_id = $1", agent.id)
        assert (signed, spent) == (executed, executed)
        assert await violations(rows, [tenant.id]) == []


async def test_of_two_executions_and_another_end_one_comes_first(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    await _race(service, tenant, as_owner, ROUNDS)


@pytest.mark.long
async def test_so_it_is_each_time(service: Service, tenant: Tenant, as_owner: Person) -> None:
    # What a person has left of recovery codes is enough for one every hundred rounds.
    await _race(service, tenant, as_owner, MANY_ROUNDS)


type CutOff = tuple[CuttingProxy, Tenant, Person, Service]


@pytest.fixture(scope="module")
def cut_off() -> Iterator[CutOff]:
    """A signer whose wire to Postgres can be cut, and a tenant with an owner that it serves."""
    with (
        killable_postgres() as postgres,
        deploy(postgres.database) as running,
        cutting_proxy(running.database.urls["signer"]) as (proxy, url),
        partner_of(running, SERVICE_DATABASE_URL_SIGNER=url) as service,
        new_tenant(service) as tenant,
        closing(member(service, tenant, "owner", mfa=True)) as owner,
    ):
        yield proxy, tenant, owner, service


async def _count_and_sum(service: Service, agent: Agent) -> tuple[int, int]:
    """Count the transactions of an agent, and sum its spending."""
    async with owner_of(service.database) as rows:
        assert await violations(rows, [str(await _tenant_of(rows, agent))]) == []
        signed = await rows.fetchval("SELECT count(*) FROM transactions WHERE agent_id = $1", agent.id)
        spent = await rows.fetchval("SELECT coalesce(sum(amount), 0)::int FROM spend WHERE agent_id = $1", agent.id)
        return signed, spent


async def _tenant_of(rows: asyncpg.Connection, agent: Agent) -> Any:
    return await rows.fetchval("SELECT tenant_id FROM agents WHERE id = $1", agent.id)


@pytest.mark.long
@pytest.mark.parametrize("how", CUTS)
async def test_an_execution_cut_at_its_commit_signs_once_and_the_intent_knows(cut_off: CutOff, how: Cut) -> None:
    proxy, tenant, owner, service = cut_off
    agent, key = tenant.agent(), {"Idempotency-Key": f"cut {how}"}
    intent = propose(tenant, transfer(agent, 3))
    act(owner, intent, "authorize")

    proxy.cut_next(how)
    answer = act(owner, intent, "execute", **key)
    again = act(owner, intent, "execute", **key)
    without = act(owner, intent, "execute")

    assert (answer.status_code, again.status_code) == (200, 200)
    assert again.json()["data"]["executionResult"] == answer.json()["data"]["executionResult"]
    assert status_and_code(without) == (409, "intent_not_authorized")
    assert tenant.ok("GET", f"/intents/{intent['id']}")["status"] == "executed"
    assert await _count_and_sum(service, agent) == (1, 3)


@pytest.mark.long
@pytest.mark.parametrize("how", CUTS)
async def test_a_batch_cut_at_its_commit_is_whole_or_not_at_all(cut_off: CutOff, how: Cut) -> None:
    proxy, tenant, owner, service = cut_off
    agent = may_send(owner, tenant.agent())
    intent = send(agent, pay(1), pay(2), pay(4)).json()["data"]["intentId"]
    act(owner, intent, "authorize")

    proxy.cut_next(how)
    answer = act(owner, intent, "execute")

    assert answer.status_code == 200, answer.text
    assert len(answer.json()["data"]["executionResult"]["transactions"]) == 3
    assert await _count_and_sum(service, agent) == (3, 7)


@pytest.mark.long
async def test_a_signer_killed_at_any_moment_leaves_an_intent_that_tells_the_truth(cut_off: CutOff) -> None:
    _, tenant, owner, service = cut_off
    agent = tenant.agent()
    intents = [propose(tenant, transfer(agent, 1))["id"] for _ in range(60)]
    for intent in intents:
        act(owner, intent, "authorize")

    # In a thread of its own, for a process is started by the thread that lives as long as the test.
    executing = threading.Thread(target=lambda: [act(owner, intent, "execute") for intent in intents])
    executing.start()
    for _ in range(5):
        service.kill("signer")
        service.start("signer")
    executing.join()

    states = Counter(tenant.ok("GET", f"/intents/{intent}")["status"] for intent in intents)
    assert set(states) <= {"executed", "authorized"}
    assert await _count_and_sum(service, agent) == (states["executed"], states["executed"])
    # What was not carried out still can be, once.
    for intent in intents:
        act(owner, intent, "execute")
    assert await _count_and_sum(service, agent) == (60, 60)
