"""The api's log of requests: a line for each change and each fault, none that a stranger can have written."""

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.server import Service


def test_a_caller_without_a_credential_causes_no_log_line(service: Service, tenant: Tenant, as_nobody: Client) -> None:
    refused = as_nobody.post("/agents", json={"id": "a", "name": "A"}, headers={"X-Request-Id": "stranger-4711"})
    done = tenant.post("/agents", json={"id": "logged", "name": "L"}, headers={"X-Request-Id": f"known-{tenant.id}"})

    assert (refused.status_code, done.status_code) == (401, 201)
    # The line of the second, which came later, shows that what there is of the first is there.
    assert f"known-{tenant.id}" in service.logs()
    assert "stranger-4711" not in service.logs()
