"""P7 of policy sets: one that was changed, exchanged, deleted or put back behind the signer signs nothing any more."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, platform_client, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.server import Service
from tests.routes.agents.makers import bind_all, keep_set

STRICT, LOOSE = (rule("spending-limit", maxPerDay=most, scope="set") for most in ("10", "1000"))
# `one` is the set of the agent, `other` a looser one.
FORGED = {
    "rules changed": "UPDATE policy_sets SET rules = replace(rules, '10', '9999') WHERE tenant_id = $1 AND id = $2",
    "rules dropped": "UPDATE policy_sets SET rules = '[]' WHERE tenant_id = $1 AND id = $2",
    "rules of another": "UPDATE policy_sets s SET rules = o.rules, mac = o.mac, version = o.version FROM policy_sets o "
    "WHERE s.tenant_id = $1 AND o.tenant_id = $1 AND s.id = $2 AND o.id = $3",
    "version lowered": "UPDATE policy_sets SET version = version - 1 WHERE tenant_id = $1 AND id = $2",
    "seal cut short": "UPDATE policy_sets SET mac = substr(mac, 1, 4) WHERE tenant_id = $1 AND id = $2",
    "deleted": "WITH a AS (UPDATE agents SET policy_set = NULL WHERE tenant_id = $1 AND policy_set = $2) "
    "DELETE FROM policy_sets WHERE tenant_id = $1 AND id = $2",
}
MEMBERS = {
    "named no more": "UPDATE agents SET policy_set = NULL WHERE tenant_id = $1 AND policy_set = $2",
    "another named": "UPDATE agents SET policy_set = $3 WHERE tenant_id = $1 AND policy_set = $2",
}
_KEEP = "SELECT version, rules, mac FROM policy_sets WHERE tenant_id = $1 AND id = $2"
_PUT_BACK = "UPDATE policy_sets SET version = $3, rules = $4, mac = $5 WHERE tenant_id = $1 AND id = $2"


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_sets")) as service:
        yield service


@pytest.fixture
def victim(apart: Service) -> Iterator[Tenant]:
    with new_tenant(apart) as tenant:
        yield tenant


@pytest.mark.parametrize("what", [*FORGED, *MEMBERS])
def test_a_set_that_is_not_as_it_was_named_signs_nothing(apart: Service, victim: Tenant, what: str) -> None:
    one, other = keep_set(victim, STRICT), keep_set(victim, LOOSE)
    agent, beside = (victim.agent(rule("policy-set", policySet=policy_set)) for policy_set in (one, other))
    assert [agent.sign().status_code, beside.sign().status_code] == [200, 200]

    _change(apart, (FORGED | MEMBERS)[what], victim.id, one, other)

    assert _is_refused(agent)
    # The control: another set's agents sign.
    assert beside.sign().status_code == 200


@pytest.mark.parametrize("what", FORGED)
def test_the_set_of_every_agent_that_is_not_as_it_was_written_signs_nothing(
    apart: Service, victim: Tenant, what: str
) -> None:
    bind_all(victim, STRICT)
    bind_all(victim, STRICT)
    other, agent = keep_set(victim, LOOSE), victim.agent()
    assert agent.sign().status_code == 200

    _change(apart, FORGED[what], victim.id, "tenant", other)

    assert _is_refused(agent)


@pytest.mark.parametrize("every", [True, False])
def test_an_older_set_that_is_put_back_is_noticed_also_after_a_restart(
    apart: Service, victim: Tenant, every: bool
) -> None:
    policy_set = "tenant"
    if every:
        bind_all(victim, LOOSE)
    else:
        policy_set = keep_set(victim, LOOSE)
    agent = victim.agent() if every else victim.agent(rule("policy-set", policySet=policy_set))
    assert agent.sign().status_code == 200
    (kept,) = _change(apart, _KEEP, victim.id, policy_set)
    victim.ok("PUT", f"/policy-sets/{policy_set}", {"name": "x", "policies": [STRICT]})

    _change(apart, _PUT_BACK, victim.id, policy_set, *kept)

    assert _is_refused(agent)
    apart.kill("signer")
    apart.start("signer")
    assert _is_refused(agent)
    # Nor is it sealed again.
    answer = victim.put(f"/policy-sets/{policy_set}", json={"name": "x", "policies": [LOOSE]})
    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "policy_tampered")


def test_the_set_of_a_tenant_that_is_made_again_is_not_missed(apart: Service) -> None:
    for _ in range(2):
        with new_tenant(apart, "again") as tenant:
            assert tenant.agent().sign().status_code == 200
            bind_all(tenant, STRICT)
            with platform_client(apart) as platform:
                platform.ok("DELETE", f"/platform/tenants/{tenant.id}")


def test_sums_that_are_lowered_give_budget_back_as_an_agents_own_do(apart: Service, victim: Tenant) -> None:
    bind_all(victim, STRICT)
    agent = victim.agent()
    assert [agent.sign(value=10).status_code, agent.sign().status_code] == [200, 403]

    _change(apart, "UPDATE set_spend SET amount = 0 WHERE tenant_id = $1", victim.id)

    # As docs/threats.md says: no sum of spend is sealed.
    assert agent.sign().status_code == 200


def _is_refused(agent: Agent) -> bool:
    answer = agent.sign()
    return (answer.status_code, answer.json()["data"]["code"]) == (503, "policy_tampered")


def _change(service: Service, statement: str, *given: Any) -> list[Any]:
    async def change() -> list[Any]:
        async with owner_of(service.database) as owner:
            used = max(number for number in range(1, 10) if f"${number}" in statement)
            found: list[Any] = await owner.fetch(statement, *given[:used])
            return found

    return asyncio.run(change())
