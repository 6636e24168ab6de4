"""Payments that agents ask for by themselves, held to the payment routes of the places that they are for."""

import uuid
from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.server import Service
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT
from tests.routes.orders import payment_demand as demand
from tests.routes.orders import payment_offer as offer

ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
NAMED = rule("approved-addresses", addresses=[SELLER], mode="whitelist")
OTHER = f"0x{'66' * 20}"
# The demand of these tests is of this place, for 60 units.
HERE = "https://api.example.com/weather"


def route(tenant: Tenant, **changed: Any) -> str:
    """Make a payment route for that host, up to 100 units a call."""
    fields = {"hostPattern": "api.example.com", "maxPerCall": {ASSET: "100"}, "payTo": [SELLER], **changed}
    made: str = tenant.ok("POST", "/payment-routes", fields)["id"]
    return made


def pay(agent: Agent, resource: str | None = None, asked: dict[str, Any] | None = None) -> tuple[int, str | None]:
    """Ask for a payment; status, and the code of a refusal."""
    named = {} if resource is None else {"resource": resource}
    answer = agent.post(f"/vault/{agent.id}/x402", json={"demand": asked or demand(), **named})
    return answer.status_code, (answer.json().get("data") or {}).get("code")


REFUSED = (403, "payment_refused")
# What a route says, and what comes of a payment that the rules would sign.
ROUTES: dict[str, tuple[dict[str, Any], tuple[int, str | None]]] = {
    "as the rules": ({}, (200, None)),
    "at its most": ({"maxPerCall": {ASSET: "60"}}, (200, None)),
    "too dear": ({"maxPerCall": {ASSET: "59"}}, REFUSED),
    "another asset": ({"maxPerCall": {f"evm:{CHAIN}:{OTHER}": "100"}}, REFUSED),
    "another recipient": ({"payTo": [OTHER]}, REFUSED),
    "another scheme": ({"schemes": ["upto"]}, REFUSED),
    "of a method": ({"method": "DELETE", "payTo": [OTHER]}, REFUSED),
    "of the path": ({"pathPattern": "/weather", "payTo": [OTHER]}, REFUSED),
    "of another path": ({"pathPattern": "/elsewhere", "payTo": [OTHER]}, (200, None)),
    "of another port": ({"hostPattern": "api.example.com:8443", "payTo": [OTHER]}, (200, None)),
    "of another host": ({"hostPattern": "api.example.org", "payTo": [OTHER]}, (200, None)),
    "of a longer host": ({"hostPattern": "api.example.com.example.org", "payTo": [OTHER]}, (200, None)),
    "of every host below": ({"hostPattern": "*.example.com", "payTo": [OTHER]}, REFUSED),
    "disabled": ({"enabled": False, "payTo": [OTHER]}, (200, None)),
    "of another agent": ({"agents": ["another"], "payTo": [OTHER]}, (200, None)),
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_payment_is_held_to_the_route_of_its_place(tenant: Tenant, name: str) -> None:
    fields, expected = ROUTES[name]
    agent = tenant.agent(NAMED)
    route(tenant, **fields)

    assert pay(agent) == expected
    # The agent's word on the place counts as the server's does.
    assert pay(agent, HERE, demand(resource={"url": "mcp://tool/weather"})) == expected


@pytest.mark.parametrize("rules", [[NAMED], []], ids=["signed", "asked about"])
def test_a_payment_is_answered_again_whatever_its_route_has_become(tenant: Tenant, rules: list[dict[str, Any]]) -> None:
    agent = tenant.agent(*rules)
    made = route(tenant)
    ask = {"json": {"demand": demand()}, "headers": {"Idempotency-Key": str(uuid.uuid4())}}
    first = agent.post(f"/vault/{agent.id}/x402", **ask)

    tenant.ok("PUT", f"/payment-routes/{made}", {"maxPerCall": {ASSET: "59"}})

    # Who was refused now would pay in another way what is signed already, or waits for a person.
    again = agent.post(f"/vault/{agent.id}/x402", **ask)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    # The control: what was not asked for before is refused.
    assert pay(agent) == REFUSED


def test_of_two_routes_the_first_decides(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED)
    route(tenant, payTo=[OTHER])
    route(tenant, priority=1)

    assert pay(agent) == (200, None)


@pytest.mark.parametrize(
    "route_says", [{"payTo": [SELLER]}, {"payTo": [], "allowUnknownPayTo": True}], ids=["names", "lets anybody"]
)
def test_an_agent_gains_nothing_by_the_place_that_it_names(tenant: Tenant, route_says: dict[str, Any]) -> None:
    route(tenant, **route_says)
    unnamed = tenant.agent()

    # Through the proxy the route would vouch for whom it pays; here nobody saw a request.
    for place in (HERE, "https://other.example.com/", None):
        assert pay(unnamed, place)[0] == 202, place
    assert [pay(tenant.agent(NAMED), place)[0] for place in (HERE, None)] == [200, 200]


def test_neither_side_can_talk_the_place_of_the_other_away(tenant: Tenant) -> None:
    route(tenant, payTo=[OTHER])
    agent = tenant.agent(NAMED)

    for place in ("https://elsewhere.example.com/", "mcp://tool", "https://api.example.com:8443/", "nonsense"):
        assert pay(agent, place) == REFUSED, place
    # The server names another place, and the agent says what it asked for.
    elsewhere = demand(resource={"url": "https://elsewhere.example.com/"})
    assert pay(agent, HERE, elsewhere) == REFUSED
    # The control: nobody names it, and the rules alone decide.
    assert pay(agent, None, elsewhere) == (200, None)
    first = {
        name: each for name, each in offer(network="base-sepolia", maxAmountRequired="7").items() if name != "amount"
    }
    for address, expected in ((HERE, REFUSED), ("https://elsewhere.example.com/", (200, None))):
        told = {"x402Version": 1, "accepts": [first | {"resource": address, "description": ""}]}
        assert pay(agent, "https://elsewhere.example.com/", told) == expected


async def test_a_route_that_was_edited_refuses_whatever_it_says(tenant: Tenant, service: Service) -> None:
    agent = tenant.agent(NAMED)
    route(tenant)
    async with owner_of(service.database) as owner:
        edited = "UPDATE payment_routes SET fields = replace(fields, '\"100\"', '\"900\"') WHERE tenant_id = $1"
        assert await owner.execute(edited, tenant.id) == "UPDATE 1"

    assert pay(agent)[0] == 503
    assert pay(agent, None, demand(resource={"url": "https://elsewhere.example.com/"})) == (200, None)
