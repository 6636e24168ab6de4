"""`new-recipient`: nothing leaves for somebody new without an approval, whatever runs at once or was planted."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from ops import places
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, AsyncClient, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.server import EVM_CHAIN, Service
from tests.promises.races import Clients

STRANGERS = [f"0x{number:040x}" for number in range(0x5001, 0x5007)]
ASKING = rule("new-recipient")
# Of each stranger the signatures that no person approved and that no approved one stands before.
FIRST = """
SELECT t.to_address FROM transactions t
 WHERE t.agent_id = $1 AND t.signature IS NOT NULL
   AND NOT EXISTS (SELECT FROM approvals a WHERE a.tx_id = t.id AND a.status = 'approved')
   AND NOT EXISTS (SELECT FROM transactions o JOIN approvals a ON a.tx_id = o.id AND a.status = 'approved'
                    WHERE o.agent_id = t.agent_id AND o.to_address = t.to_address AND o.signed_at < t.signed_at)
"""


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deploy(database_apart(postgres_home, f"{worker_id}_recipients")) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service) -> Iterator[list[Service]]:
    """Two signers on one database."""
    with partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}") as other:
        yield [one, other]


async def test_a_stranger_is_paid_only_once_a_person_approved_it(pair: list[Service]) -> None:
    with new_tenant(pair[0]) as tenant:
        agent = tenant.agent(ASKING)
        came_to = await _race(pair, tenant, agent, approved=3)

        signed = await _signed_to(pair[0], agent)
        assert await _first_ones(pair[0], agent) == []
        # A person approved one to each of three, and what was asked after that went by itself; none to the others.
        assert set(signed) == set(STRANGERS[:3])
        assert all(count >= 1 for count in signed.values())
        assert came_to["200"] + 3 == sum(signed.values())
        assert came_to["202"] == 120 - came_to["200"]
        assert agent.sign(STRANGERS[0]).status_code == 200
        assert agent.sign(STRANGERS[5]).status_code == 202


async def test_the_race_sees_payments_that_nobody_approved(pair: list[Service]) -> None:
    with new_tenant(pair[0]) as tenant:
        agent = tenant.agent(rule("new-recipient", known=STRANGERS))
        await _race(pair, tenant, agent, approved=0)

        assert set(await _first_ones(pair[0], agent)) == set(STRANGERS)


# Whatever a database writer puts there is not under the signer's MAC of just this row.
PLANTED = {
    "of another agent": "INSERT INTO recipients SELECT tenant_id, $2, (SELECT incarnation FROM agents WHERE id = $2), "
    "kind, name, mac, noted_at FROM recipients WHERE agent_id = $1",
    "of another address": "UPDATE recipients SET name = replace(name, '22', '11') WHERE agent_id IN ($1, $2)",
    "without a seal": "INSERT INTO recipients SELECT tenant_id, id, incarnation, 'paid', $1, '', now() FROM agents "
    "WHERE id = $2",
}


@pytest.mark.parametrize("way", PLANTED)
async def test_a_row_that_was_planted_makes_nobody_known(one: Service, way: str) -> None:
    with new_tenant(one) as tenant:
        known, agent = tenant.agent(ASKING), tenant.agent(ASKING)
        _approve(tenant, known, ADDRESS)
        _approve(tenant, agent, OTHER_ADDRESS)
        async with owner_of(one.database) as owner:
            await owner.execute(
                PLANTED[way], f"eip155:{EVM_CHAIN}:{ADDRESS}" if way == "without a seal" else known.id, agent.id
            )

        assert known.sign(ADDRESS).status_code == 200
        assert agent.sign(ADDRESS).status_code == 202
        # And a person who approves makes it known all the same.
        _approve(tenant, agent, ADDRESS)
        assert agent.sign(ADDRESS).status_code == 200


def test_a_known_recipient_is_forgotten_with_the_agent(one: Service) -> None:
    with new_tenant(one) as tenant:
        agent = tenant.agent(ASKING)
        _approve(tenant, agent, ADDRESS)
        assert agent.sign(ADDRESS).status_code == 200
        tenant.ok("DELETE", f"/agents/{agent.id}")

        assert tenant.agent(ASKING, agent_id=agent.id).sign(ADDRESS).status_code == 202


def test_known_is_whom_a_person_approved_while_the_rule_was_there(one: Service) -> None:
    with new_tenant(one) as tenant:
        agent = tenant.agent()
        # Without the rule nothing is noted; a disabled one misses nothing.
        assert agent.sign(ADDRESS).status_code == 200
        _set(tenant, agent, ASKING)
        assert agent.sign(ADDRESS).status_code == 202
        _set(tenant, agent, rule("new-recipient", enabled=False), rule("auto-approve-threshold", threshold="0"))
        _approve(tenant, agent, ADDRESS)
        _set(tenant, agent, ASKING)

        assert agent.sign(ADDRESS).status_code == 200
        # One chain's contract wallet may be another's elsewhere.
        assert agent.sign(ADDRESS, chainId=10).status_code == 202
        assert agent.sign(OTHER_ADDRESS).status_code == 202
        seen = agent.ok("POST", f"/vault/{agent.id}/simulate", _question(OTHER_ADDRESS))
        assert [result["reason"] for result in seen["results"]] == [
            f"{OTHER_ADDRESS} was never paid by this agent on chain {EVM_CHAIN}: a person must approve it"
        ]


def test_a_rule_in_a_set_of_many_agents_knows_for_each_by_itself(one: Service) -> None:
    with new_tenant(one) as tenant:
        made = tenant.ok("POST", "/policy-sets", {"name": "Team", "policies": [ASKING]})["id"]
        agent, other = (tenant.agent(rule("policy-set", policySet=made)) for _ in range(2))
        _approve(tenant, agent, ADDRESS)

        assert agent.sign(ADDRESS).status_code == 200
        assert other.sign(ADDRESS).status_code == 202


def test_an_agent_makes_nobody_known_by_itself(one: Service) -> None:
    with new_tenant(one) as tenant:
        agent = tenant.agent(rule("new-recipient", known=[OTHER_ADDRESS]))
        looser = agent.put(f"/agents/{agent.id}/policies", json=[rule("new-recipient", known=[ADDRESS, OTHER_ADDRESS])])

        assert (looser.status_code, looser.json()["data"]["code"]) == (403, "policy_loosened")
        assert agent.put(f"/agents/{agent.id}/policies", json=[ASKING]).status_code == 200
        assert agent.sign(OTHER_ADDRESS).status_code == 202


def test_a_back_test_knows_whom_approved_orders_reached(one: Service) -> None:
    with new_tenant(one) as tenant:
        agent = tenant.agent(rule("auto-approve-threshold", threshold="1"))
        _approve(tenant, agent, ADDRESS, value=2)
        assert [agent.sign(to).status_code for to in (ADDRESS, OTHER_ADDRESS)] == [200, 200]
        found = tenant.ok("POST", f"/agents/{agent.id}/policies/backtest", {"policies": [ASKING], "days": 1})

        assert found["examined"] == 3
        assert [(one["was"], one["now"]) for one in found["changed"]] == [("sign", "queue")]


async def _race(services: Sequence[Service], tenant: Tenant, agent: Agent, approved: int) -> Counter[str]:
    """120 orders to six strangers, twenty each, while a person approves the first to some of them."""
    orders = [
        (f"/vault/{agent.id}/sign", {"to": STRANGERS[number % 6], "value": str(number + 1), "broadcast": False})
        for number in range(120)
    ]
    asking = asyncio.ensure_future(Clients(services, 16).do(agent, orders))
    async with AsyncClient(base_url=services[0].url, headers=tenant.headers) as person:
        for stranger in STRANGERS[:approved]:
            await _approve_first(person, agent, stranger)
    return Counter(str(answer.status_code) for answer in await asking)


async def _approve_first(person: AsyncClient, agent: Agent, stranger: str) -> None:
    """Approve the first item to a stranger, once there is one."""
    async with asyncio.timeout(120):
        while True:
            listed = (await person.get("/approvals", params={"agentId": agent.id, "limit": 100})).json()["data"]
            found = [item for item in listed if item["toAddress"] == stranger]
            if found:
                answer = await person.post(f"/approvals/{found[-1]['id']}/approve", json={})
                assert answer.status_code == 200, answer.text
                return


async def _first_ones(service: Service, agent: Agent) -> list[str]:
    async with owner_of(service.database) as owner:
        return [row["to_address"] for row in await owner.fetch(FIRST, agent.id)]


async def _signed_to(service: Service, agent: Agent) -> dict[str, int]:
    query = "SELECT to_address, count(*) FROM transactions WHERE agent_id = $1 AND signature IS NOT NULL GROUP BY 1"
    async with owner_of(service.database) as owner:
        return {row[0]: row[1] for row in await owner.fetch(query, agent.id)}


def _approve(tenant: Tenant, agent: Agent, to: str, value: int = 1) -> None:
    asked = agent.sign(to, value=value)
    assert asked.status_code == 202, asked.text
    tenant.ok("POST", f"/approvals/{asked.json()['data']['approvalId']}/approve", {})


def _set(tenant: Tenant, agent: Agent, *rules: dict[str, object]) -> None:
    tenant.ok("PUT", f"/agents/{agent.id}/policies", list(rules))


def _question(to: str) -> dict[str, object]:
    return {"kind": "evm", "request": {"to": to, "value": "1", "broadcast": False}}
