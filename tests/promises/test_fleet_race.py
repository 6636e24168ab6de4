"""P1 over a fleet: many agents at once spend what all of them may together; without the guard they spend more."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from custody.database.texts import read
from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.eventually import soon
from tests.fixtures.server import Service
from tests.promises.races import Clients, order_of
from tests.routes.agents.makers import charge, make_route

UNITS = 100
AGENTS = 20
_CHAIN = 10
WINDOWS = [{"maxPerDay": str(UNITS)}, {"maxPerWeek": str(UNITS)}, {"maxTotal": str(UNITS)}]
OWN = rule("spending-limit", maxPerDay="1000000000")


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment of this file's own, where a wei is worth a millionth of a dollar."""
    prices = tmp_path_factory.mktemp("prices") / "prices.toml"
    prices.write_text(f'"evm:{_CHAIN}:native" = "{10**12}"\n')
    database = database_apart(postgres_home, f"{worker_id}_fleet")
    with deploy(database, SERVICE_PRICES_FILE=str(prices)) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service) -> Iterator[list[Service]]:
    """Two signers on one database."""
    with partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}") as other:
        yield [one, other]


@pytest.fixture
def blind_service(one: Service) -> Iterator[Service]:
    """The sums are kept, and no write looks whether one passes its limit."""
    whole = next(text.sql for text in read() if text.name == "charge_sets")
    blind = whole.replace("RAISE EXCEPTION 'no room in a policy set' USING ERRCODE = 'CU005'", "NULL")
    asyncio.run(_execute(one, blind.replace("CREATE ", "CREATE OR REPLACE ", 1)))
    try:
        yield one
    finally:
        asyncio.run(_execute(one, whole.replace("CREATE ", "CREATE OR REPLACE ", 1)))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: next(iter(window)))
async def test_all_agents_of_a_tenant_together_sign_exactly_its_limit(one: Service, window: dict[str, str]) -> None:
    with new_tenant(one) as tenant:
        limit_all(tenant, **window)
        agents = [tenant.agent(OWN) for _ in range(AGENTS)]
        outcomes = await ask_all([one], agents, 8)

        assert await count_signed(one, tenant) == UNITS
        assert outcomes == {"200": UNITS, "403": 8 * AGENTS - UNITS}


async def test_agents_at_two_signers_together_sign_exactly_the_limit_of_their_set(pair: list[Service]) -> None:
    with new_tenant(pair[0]) as tenant:
        policy_set = make_set(tenant, {"maxPerDay": str(UNITS)})
        agents = [tenant.agent(rule("policy-set", policySet=policy_set)) for _ in range(AGENTS)]
        beside = tenant.agent(OWN)
        outcomes = await ask_all(pair, agents, 8)

        assert await count_signed(pair[0], tenant) == UNITS
        assert outcomes == {"200": UNITS, "403": 8 * AGENTS - UNITS}
        # The control: who does not name it is not limited by it.
        assert beside.sign(value=10 * UNITS).status_code == 200


async def test_signatures_and_calls_of_many_agents_spend_exactly_the_tenants_dollars(one: Service) -> None:
    with new_tenant(one) as tenant:
        limit_all(tenant, maxPerDay=str(UNITS), asset="usd")
        agents = [tenant.agent(rule("spending-limit", maxPerDay="1000000000", asset="usd")) for _ in range(AGENTS)]
        route = make_route(tenant, 1)
        await asyncio.gather(
            ask_all([one], agents, 4, chainId=_CHAIN),
            *(asyncio.to_thread(charge, one, agent, route, 4) for agent in agents),
        )

        charged = await _sum(one, "SELECT sum(micro_usd) FROM call_charges WHERE tenant_id = $1", tenant)
        assert charged > 0
        assert await count_signed(one, tenant) + charged == UNITS


async def test_a_killed_signer_leaves_exactly_what_was_signed_in_the_sum(one: Service) -> None:
    with new_tenant(one) as tenant:
        limit_all(tenant, maxPerDay=str(UNITS))
        agents = [tenant.agent(OWN) for _ in range(AGENTS)]
        asking = asyncio.ensure_future(ask_all([one], agents, 4))
        await soon(lambda: count_signed(one, tenant), lambda units: units >= 10)
        await asyncio.to_thread(one.kill, "signer")
        await asyncio.to_thread(one.start, "signer")
        await asking

        # Whatever was answered: what is left of the room is there, and no more.
        left = UNITS - await count_signed(one, tenant)
        assert left == UNITS - await _sum(one, "SELECT amount FROM set_totals WHERE tenant_id = $1", tenant)
        answers = [agents[0].sign(value=left + 1).status_code, agents[0].sign(value=max(left, 1)).status_code]
        assert answers == [403, 200 if left else 403]


async def test_without_the_guard_the_agents_sign_more_than_all_may(blind_service: Service) -> None:
    with new_tenant(blind_service) as tenant:
        limit_all(tenant, maxPerDay=str(UNITS))
        agents = [tenant.agent(OWN) for _ in range(AGENTS)]
        # All of them have judged before any has asked twice.
        assert {agent.sign().status_code for agent in agents} == {200}
        await ask_all([blind_service], agents, 8)

        assert await count_signed(blind_service, tenant) > UNITS


def limit_all(tenant: Tenant, **config: str) -> None:
    """Limit what all agents of a tenant spend together."""
    limit = rule("spending-limit", scope="set", **config)
    tenant.ok("PUT", "/policy-sets/tenant", {"name": "All", "policies": [limit]})


def make_set(tenant: Tenant, config: dict[str, str]) -> str:
    """Make a set that limits what all of its agents spend together."""
    policies = [rule("spending-limit", scope="set", **config)]
    made: str = tenant.ok("POST", "/policy-sets", {"name": "Team", "policies": policies})["id"]
    return made


async def ask_all(services: Sequence[Service], agents: Sequence[Agent], times: int, **fields: int) -> Counter[str]:
    """Ask every agent so often for one unit, two at once of each."""
    found = await asyncio.gather(
        *(Clients(services, 2).do(agent, [order_of(agent, **fields) for _ in range(times)]) for agent in agents)
    )
    return Counter(str(answer.status_code) for answers in found for answer in answers)


async def count_signed(service: Service, tenant: Tenant) -> int:
    """Add up what all agents of a tenant signed away, by the table of orders."""
    return await _sum(
        service, "SELECT sum(value) FROM transactions WHERE tenant_id = $1 AND signature IS NOT NULL", tenant
    )


async def _sum(service: Service, query: str, tenant: Tenant) -> int:
    async with owner_of(service.database) as owner:
        return int(await owner.fetchval(query, tenant.id) or 0)


async def _execute(service: Service, statement: str) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(statement)
