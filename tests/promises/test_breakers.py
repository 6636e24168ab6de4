"""`circuit-breaker`: the write that reaches the number freezes, and nothing is signed after its commit."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from custody.database.texts import read
from custody.kit.callers import Origin
from custody.protocol.client import SignerClient
from custody.protocol.signer.orders import ChainOutcome
from ops import places
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.promises.races import Clients

ONLY = rule("approved-addresses", addresses=[ADDRESS])
BREAKER = rule("circuit-breaker", minutes=10, refused=5, failed=2)
# When it was frozen, and of what is signed or refused how much stands after that.
AFTER = """
SELECT a.frozen_at, a.frozen_reason,
       count(*) FILTER (WHERE t.signature IS NOT NULL) AS signed,
       count(*) FILTER (WHERE t.signature IS NOT NULL AND t.signed_at > a.frozen_at) AS signed_after,
       count(*) FILTER (WHERE t.status = 'rejected') AS refused
  FROM agents a LEFT JOIN transactions t ON t.tenant_id = a.tenant_id AND t.agent_id = a.id
 WHERE a.id = $1 GROUP BY a.frozen_at, a.frozen_reason
"""


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deploy(database_apart(postgres_home, f"{worker_id}_breakers")) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service) -> Iterator[list[Service]]:
    """Two signers on one database."""
    with partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}") as other:
        yield [one, other]


@pytest.fixture
def holder(one: Service) -> Iterator[Tenant]:
    """A tenant of this test's own."""
    with new_tenant(one) as tenant:
        yield tenant


@pytest.fixture
def only_counting(pair: list[Service]) -> Iterator[list[Service]]:
    """A count that freezes nobody."""
    whole = next(text.sql for text in read() if text.name == "count_for_breaker").replace(
        "CREATE ", "CREATE OR REPLACE ", 1
    )
    careless = whole.replace("AND frozen_at IS NULL;", "AND frozen_at IS NULL AND false;")
    assert careless != whole
    asyncio.run(_execute(pair[0], careless))
    try:
        yield pair
    finally:
        asyncio.run(_execute(pair[0], whole))


async def test_of_orders_at_once_none_is_signed_after_the_fifth_refusal(pair: list[Service], holder: Tenant) -> None:
    agent = holder.agent(ONLY, BREAKER)
    answers = await race(pair, agent)

    found = await state_of(pair[0], agent)
    print(answers, dict(found))
    assert found["frozen_at"] is not None
    assert (found["signed_after"], found["refused"]) == (0, 5)
    assert answers == Counter({"200": found["signed"], "403": 5, "423": 115 - found["signed"]})
    assert found["frozen_reason"].startswith("5 orders were refused in 10 minutes: frozen by rule ")


async def test_without_the_freeze_more_are_refused_and_signed(only_counting: list[Service], holder: Tenant) -> None:
    agent = holder.agent(ONLY, BREAKER)
    answers = await race(only_counting, agent)

    assert answers == {"200": 60, "403": 60}


def test_four_refusals_and_what_is_no_refusal_freeze_nobody(one: Service, holder: Tenant) -> None:
    agent = holder.agent(ONLY, BREAKER, rule("rate-limit", maxTxPerHour=1))
    assert agent.sign(ADDRESS).status_code == 200
    assert [agent.sign(OTHER_ADDRESS).status_code for _ in range(4)] == [403] * 4
    for _ in range(6):
        assert agent.sign(ADDRESS).status_code == 429
        assert agent.sign("0x1").status_code == 400

    assert agent.sign(ADDRESS).status_code == 429
    assert agent.sign(OTHER_ADDRESS).status_code == 403
    assert agent.sign(ADDRESS).status_code == 423


async def test_a_trip_is_told_once_and_an_unfreeze_begins_again(one: Service, holder: Tenant) -> None:
    owner = member(one, holder, "owner", mfa=True)
    agent = holder.agent(ONLY, BREAKER, rule("delay", minutes=1, above="5"))
    delayed = agent.sign(ADDRESS, value=6).json()["data"]
    assert delayed["releaseAt"] is not None
    for _ in range(5):
        agent.sign(OTHER_ADDRESS)
    async with owner_of(one.database) as rows:
        event, frozen = await rows.fetch(
            "SELECT data::json FROM (SELECT tenant_id, event, data FROM outbox UNION ALL SELECT tenant_id, event, data "
            "FROM events) e WHERE tenant_id = $1 AND event IN ('breaker.tripped', 'agent.frozen') ORDER BY event DESC",
            holder.id,
        )
        [row] = await rows.fetch(
            "SELECT actor_id, resource_id, written_by FROM audit WHERE tenant_id = $1 AND action = 'agent.frozen'",
            holder.id,
        )
    assert "5 orders were refused in 10 minutes" in event[0]
    assert "circuit-breaker" in frozen[0]
    assert tuple(row) == ("circuit-breaker", agent.id, "custody_signer")
    # What waited for its time waits for a person from now on.
    assert holder.ok("GET", f"/approvals/{delayed['approvalId']}")["releaseAt"] is None

    owner.ok("POST", f"/agents/{agent.id}/unfreeze", {})
    assert [agent.sign(OTHER_ADDRESS).status_code for _ in range(4)] == [403] * 4
    assert agent.sign(ADDRESS).status_code == 200
    owner.close()


async def test_failures_freeze_and_replacements_do_not(one: Service, holder: Tenant) -> None:
    agent = holder.agent(BREAKER)
    orders = [agent.sign(ADDRESS, value=number + 1).json()["data"]["txId"] for number in range(4)]

    await tell(one, holder, orders[0], "replaced")
    await tell(one, holder, orders[1], "reverted")
    await tell(one, holder, orders[1], "reverted")
    assert agent.sign(ADDRESS, value=9).status_code == 200
    await tell(one, holder, orders[2], "expired")

    assert agent.sign(ADDRESS, value=10).status_code == 423
    assert (await state_of(one, agent))["frozen_reason"].startswith("2 orders failed in 10 minutes")


async def test_a_breaker_of_a_policy_set_freezes_the_agent_alone(one: Service, holder: Tenant) -> None:
    made = holder.ok("POST", "/policy-sets", {"name": "Team", "policies": [ONLY, BREAKER]})["id"]
    agent, other = (holder.agent(rule("policy-set", policySet=made)) for _ in range(2))
    for _ in range(4):
        assert {agent.sign(OTHER_ADDRESS).status_code, other.sign(OTHER_ADDRESS).status_code} == {403}
    assert agent.sign(OTHER_ADDRESS).status_code == 403

    assert (agent.sign(ADDRESS).status_code, other.sign(ADDRESS).status_code) == (423, 200)


def test_an_agent_takes_its_breaker_not_away(one: Service, holder: Tenant) -> None:
    agent = holder.agent(BREAKER)
    looser = agent.put(f"/agents/{agent.id}/policies", json=[rule("circuit-breaker", minutes=10, refused=6, failed=2)])

    assert (looser.status_code, looser.json()["data"]["code"]) == (403, "policy_loosened")


async def race(services: list[Service], agent: Agent) -> Counter[str]:
    """120 orders at once, every other one to somebody whom the rules refuse."""
    orders = [
        (f"/vault/{agent.id}/sign", {"to": to, "value": str(number + 1), "broadcast": False})
        for number in range(60)
        for to in (ADDRESS, OTHER_ADDRESS)
    ]
    return Counter(str(answer.status_code) for answer in await Clients(services, 120).do(agent, orders))


async def state_of(service: Service, agent: Agent) -> Any:
    """Everything that the tables tell of it."""
    async with owner_of(service.database) as owner:
        return await owner.fetchrow(AFTER, agent.id)


async def tell(service: Service, tenant: Tenant, tx_id: str, outcome: Any) -> None:
    """Tell the signer what became of an order, as a scheduler does."""
    signer = SignerClient(str(service.socket), "scheduler")
    await signer.tell(ChainOutcome(tenant.id, tx_id, outcome, 1, None), Origin("test"))
    await signer.close()


async def _execute(service: Service, statement: str) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(statement)
