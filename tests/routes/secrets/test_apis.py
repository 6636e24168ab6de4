"""The APIs that an agent may call, as it is told of them: its own, those that work, and nothing of a secret."""

from typing import Any

import asyncpg

from tests.fixtures.callers import Agent, Tenant
from tests.routes.secrets.makers import keep_route, keep_secret


def apis(client: Any, agent: Agent, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.ok("GET", f"/agents/{agent.id}/apis{query}")
    return found


def hosts(client: Any, agent: Agent, query: str = "") -> list[str]:
    return [one["hostPattern"] for one in apis(client, agent, query)]


def test_an_agent_sees_the_apis_that_serve_it_in_their_order(tenant: Tenant, agent: Agent) -> None:
    other = tenant.agent()
    keep_route(tenant, hostPattern="low.example.com", priority=-1)
    keep_route(tenant, hostPattern="first.example.com:8443", pathPattern="/v1/*", method="POST", priority=5)
    keep_route(tenant, hostPattern="own.example.com", agents=[agent.id])
    keep_route(tenant, hostPattern="theirs.example.com", agents=[other.id])
    keep_route(tenant, hostPattern="off.example.com", enabled=False)
    tenant.ok("POST", "/secrets/routes", {"hostPattern": "open.example.com", "injectAs": "none"})

    expected = ["first.example.com:8443", "own.example.com", "open.example.com", "low.example.com"]
    assert hosts(agent, agent) == hosts(tenant, agent) == expected
    assert hosts(other, other) == [one.replace("own", "theirs") for one in expected]
    assert apis(agent, agent)[0] == {
        "hostPattern": "first.example.com:8443", "pathPattern": "/v1/*", "method": "POST", "enabled": True,
        "costMicroUsd": 0, "maxMicroUsd": 0, "pays": False,
    }  # fmt: skip
    page = agent.get(f"/agents/{agent.id}/apis?limit=2&offset=1")
    assert [one["hostPattern"] for one in page.json()["data"]] == expected[1:3]
    assert page.headers["X-Total-Count"] == "4"


def test_an_agent_sees_what_an_api_costs_and_whether_it_is_paid(tenant: Tenant, agent: Agent) -> None:
    usage = {"form": "openai", "input": 1, "output": 1}
    keep_route(tenant, hostPattern="priced.example.com", costMicroUsd=500, priority=3)
    keep_route(tenant, hostPattern="metered.example.com", maxMicroUsd=9000, usage=usage, priority=2)
    keep_route(tenant, hostPattern="sells.example.com", method="GET", priority=1)
    price = {"maxPerCall": {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": "1000"}, "payTo": []}

    def tell() -> list[tuple[int, int, bool]]:
        return [(one["costMicroUsd"], one["maxMicroUsd"], one["pays"]) for one in apis(agent, agent)]

    for other in ({"method": "POST"}, {"agents": [tenant.agent().id]}, {"enabled": False}):
        tenant.ok("POST", "/payment-routes", {"hostPattern": "sells.example.com", **price, **other})
    before = tell()
    tenant.ok("POST", "/payment-routes", {"hostPattern": "sells.example.com", **price})

    assert before == [(500, 0, False), (0, 9000, False), (0, 0, False)]
    assert tell() == [(500, 0, False), (0, 9000, False), (0, 0, True)]


async def test_an_api_without_a_usable_secret_is_not_listed(
    tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    kept, gone, late = (keep_secret(tenant) for _ in range(3))
    also = {"injectAs": "header", "injectKey": "X-More"}
    keep_route(tenant, kept, hostPattern="kept.example.com", alsoInject=[{"secretId": late["id"], **also}])
    keep_route(tenant, gone, hostPattern="gone.example.com")
    keep_route(tenant, kept, hostPattern="half.example.com", alsoInject=[{"secretId": gone["id"], **also}])
    keep_route(tenant, late, hostPattern="late.example.com")
    assert len(hosts(agent, agent)) == 4

    tenant.ok("DELETE", f"/secrets/{gone['id']}")
    before = hosts(agent, agent)
    await owner.execute("UPDATE secrets SET expires_at = service_now() WHERE id = $1", late["id"])

    assert (before, hosts(agent, agent)) == (["kept.example.com", "late.example.com"], [])


def test_no_secret_and_no_name_of_one_is_told(tenant: Tenant, agent: Agent) -> None:
    secret = keep_secret(tenant, value="the-value-itself")
    route = keep_route(tenant, secret, injectKey="X-Its-Header", injectFormat="Prefix {value}")

    told = agent.get(f"/agents/{agent.id}/apis").text

    assert route["hostPattern"] in told
    for word in (secret["name"], secret["id"], route["id"], "the-value-itself", "X-Its-Header", "Prefix"):
        assert word not in told


def test_a_frozen_agent_is_told_that_nothing_goes_out(tenant: Tenant, agent: Agent) -> None:
    keep_route(tenant)
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {})

    assert [one["enabled"] for one in apis(agent, agent)] == [False]


def test_an_agent_is_told_of_no_other(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    keep_route(tenant)
    other = tenant.agent()

    assert agent.get(f"/agents/{other.id}/apis").status_code == 403
    assert other_tenant.get(f"/agents/{agent.id}/apis").status_code == 404
    assert tenant.get("/agents/absent/apis").json()["data"]["code"] == "agent_absent"
