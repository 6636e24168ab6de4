"""Policy sets with good defaults, and priced calls that they limit."""

import uuid
from typing import Any

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.safes import token_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet


def keep_set(tenant: Tenant, *policies: dict[str, Any], name: str = "A set") -> str:
    """Make a policy set; its id."""
    made: str = tenant.ok("POST", "/policy-sets", {"name": name, "policies": list(policies)})["id"]
    return made


def bind_all(tenant: Tenant, *policies: dict[str, Any]) -> None:
    """Bind every agent of a tenant by these rules."""
    tenant.ok("PUT", "/policy-sets/tenant", {"name": "All", "policies": list(policies)})


def make_route(tenant: Tenant, micro_usd: int) -> str:
    """The id of a route that injects nothing and whose calls cost so much."""
    fields = {"hostPattern": "api.example.com", "injectAs": "none", "costMicroUsd": micro_usd}
    made: str = tenant.ok("POST", "/secrets/routes", fields)["id"]
    return made


def charge(service: Service, agent: Agent, route: str, times: int = 1) -> None:
    """Charge some calls one after the other, as a proxy does on one connection; there may be no room."""
    proof = {"kind": "agent", "value": token_of(agent)}
    with greet(service, "proxy") as wire:
        for _ in range(times):
            # Beside busy loops a turn takes its time.
            answer = wire.ask("ChargeCall", {"route": route, "call": str(uuid.uuid4())}, proof, deadline_ms=60_000)
            assert answer["type"] == "Charged" or answer["code"] == "budget_exceeded", answer
