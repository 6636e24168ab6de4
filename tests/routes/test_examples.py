"""The bodies that the contract shows: each is what its operation takes, and what can be sent as it stands succeeds."""

from typing import Any

import msgspec
import pytest

from api.http import openapi
from api.http.contract.examples import BODIES
from api.routes import endpoints
from tests.fixtures.callers import Tenant

BY_NAME = {openapi.operation_id(endpoint): endpoint for endpoint in endpoints()}


@pytest.mark.parametrize("operation", BODIES)
def test_an_example_is_a_body_of_its_operation(operation: str) -> None:
    msgspec.convert(BODIES[operation], BY_NAME[operation].body)


def test_examples_succeed_as_they_stand(tenant: Tenant) -> None:
    def send(operation: str, **path: str) -> Any:
        endpoint = BY_NAME[operation]
        return tenant.ok(endpoint.method, endpoint.contract_path.format(**path), BODIES[operation])

    agent = send("createAgent")["id"]
    assert send("createAgents")["errors"] == []
    assert send("changeAgent", agentId=agent)["name"] == BODIES["changeAgent"]["name"]
    payer = tenant.as_agent(tenant.ok("GET", f"/agents/{agent}"))
    signed = [
        payer.post(f"/vault/{agent}/{part}", json=BODIES[operation])
        for part, operation in (("sign", "signEvmTransaction"), ("sign-typed-data", "signTypedData"))
    ]
    assert [answer.status_code for answer in signed] == [200, 200]
    assert len(send("replacePolicies", agentId=agent)) == len(BODIES["replacePolicies"])
    for operation in ("simulateOrder", "backtestPolicies", "createAgentToken", "freezeAgent"):
        send(operation, agentId=agent)
    secret = send("createSecret")["id"]
    send("rotateSecret", id=secret)
    send("explainCredentialRoute")
