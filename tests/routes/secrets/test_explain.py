"""The route that a request would fall to, and why; nothing is sent, nothing is written."""

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.eventually import eventually
from tests.routes.secrets.makers import HOST, keep_route, keep_secret

EXPLAIN = "/secrets/routes/explain"
FREEZE = {
    "agent_frozen": "UPDATE agents SET frozen_at = now() WHERE tenant_id = $1",
    "tenant_frozen": "UPDATE tenants SET frozen_at = now() WHERE id = $1",
}


def explain(tenant: Tenant, agent: Agent, url: str = f"https://{HOST}/v1/x", method: str = "GET") -> dict[str, Any]:
    found: dict[str, Any] = tenant.ok("POST", EXPLAIN, {"agentId": agent.id, "method": method, "url": url})
    return found


def reasons(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["routeId"], one["reason"]) for one in found["considered"]]


def test_a_request_falls_to_the_first_route_that_fits(tenant: Tenant, agent: Agent) -> None:
    route = keep_route(tenant)

    found = explain(tenant, agent)

    assert found == {
        "matched": route,
        "reason": "matched",
        "considered": [{"routeId": route["id"], "reason": "matched"}],
    }


def test_without_a_fitting_route_there_is_none(tenant: Tenant, agent: Agent) -> None:
    assert explain(tenant, agent) == {"matched": None, "reason": "no_route", "considered": []}


def test_every_route_is_considered_in_order_with_its_reason(tenant: Tenant, agent: Agent) -> None:
    secret = keep_secret(tenant)
    said: list[tuple[dict[str, Any], str]] = [
        ({"priority": 9, "enabled": False}, "disabled"),
        ({"priority": 8, "hostPattern": "other.example.com"}, "host"),
        ({"priority": 7, "hostPattern": f"{HOST}:8443"}, "port"),
        ({"priority": 6, "pathPattern": "/v2/*"}, "path"),
        ({"priority": 5, "method": "POST"}, "method"),
        ({"priority": 4, "hostPattern": "*.example.com"}, "matched"),
        ({"priority": 4, "hostPattern": HOST}, "lower_priority"),
        ({"priority": 3}, "lower_priority"),
    ]
    made = [keep_route(tenant, secret, **fields) for fields, _ in said]

    found = explain(tenant, agent)

    assert reasons(found) == [(route["id"], reason) for route, (_, reason) in zip(made, said, strict=True)]
    assert found["matched"] == made[5]


def test_of_equal_priority_the_oldest_wins_and_a_higher_priority_wins_later(tenant: Tenant, agent: Agent) -> None:
    oldest, newer = keep_route(tenant), keep_route(tenant)
    assert explain(tenant, agent)["matched"] == oldest

    raised = tenant.ok("PUT", f"/secrets/routes/{newer['id']}", {"priority": 1})

    assert explain(tenant, agent)["matched"] == raised


@pytest.mark.parametrize(
    "url",
    [
        f"https://{HOST}",
        f"https://{HOST}/",
        f"HTTPS://{HOST.upper()}/v1?q=%2e%2e",
        f"http://{HOST}/v1",
        f"http://{HOST}:80/v1",
        f"https://{HOST}:443/%61",
    ],
)
def test_a_url_is_read_as_the_proxy_reads_it(tenant: Tenant, agent: Agent, url: str) -> None:
    route = keep_route(tenant)

    assert explain(tenant, agent, url)["matched"] == route


def test_a_path_with_an_escaped_slash_is_explained_as_the_proxy_reads_it(tenant: Tenant, agent: Agent) -> None:
    route = keep_route(tenant, pathPattern="/v1/*")

    assert explain(tenant, agent, f"https://{HOST}/v1/a%2Fb")["matched"] == route
    assert explain(tenant, agent, f"https://{HOST}/v1%2Fa")["reason"] == "no_route"
    keep_route(tenant, pathPattern="/v1/a/*", priority=1)
    answer = tenant.post(EXPLAIN, json={"agentId": agent.id, "method": "GET", "url": f"https://{HOST}/v1/a%2Fb"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "malformed_target")
    assert answer.json()["error"].startswith("url: Servers read this path in several ways")


def test_an_encoded_letter_is_the_letter_and_the_method_is_in_upper_case(tenant: Tenant, agent: Agent) -> None:
    route = keep_route(tenant, pathPattern="/admin", method="DELETE")

    assert explain(tenant, agent, f"https://{HOST}/%61dmin", "delete")["matched"] == route
    assert explain(tenant, agent, f"https://{HOST}/Admin", "DELETE")["reason"] == "no_route"
    assert explain(tenant, agent, f"https://{HOST}/admin", "GET")["reason"] == "no_route"


@pytest.mark.parametrize(
    "url",
    [
        HOST,
        f"ftp://{HOST}/",
        "https://",
        "https:///v1",
        f"https://user@{HOST}/",
        f"https://user:pass@{HOST}/",
        "https://127.1/",
        "https://[0::1]/",
        "https://2130706433/",
        f"https://{HOST}./",
        f"https://{HOST}:0/",
        f"https://{HOST}:99999/",
        f"https://{HOST}/a/../b",
        f"https://{HOST}/a%2f..",
        f"https://{HOST}/%2e%2e/",
        f"https://{HOST}/%252e/",
        f"https://{HOST}/%00",
        f"https://{HOST}/a b",
        f"https://{HOST}/#top",
        "https://bücher.example/",
        f"https://{HOST}\\@other.example/",
        f"https://{HOST}/" + "x" * 16_384,
    ],
)
def test_a_malformed_url_is_400_with_a_sentence(tenant: Tenant, agent: Agent, url: str) -> None:
    answer = tenant.post(EXPLAIN, json={"agentId": agent.id, "method": "GET", "url": url})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "malformed_target")
    assert answer.json()["data"]["fields"] == ["url"]
    assert answer.json()["error"].startswith("url: ")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"agentId": ""}, "agentId"),
        ({"agentId": "a b"}, "agentId"),
        ({"method": ""}, "method"),
        ({"method": "*"}, "method"),
        ({"method": "GET\n"}, "method"),
        ({"method": 5}, "method"),
        ({"url": ""}, "url"),
        ({"url": None}, "url"),
        ({"url": "x" * 33_000}, "url"),
    ],
)
def test_a_malformed_question_is_400(tenant: Tenant, agent: Agent, changed: dict[str, Any], field: str) -> None:
    asked = {"agentId": agent.id, "method": "GET", "url": f"https://{HOST}/", **changed}

    answer = tenant.post(EXPLAIN, json=asked)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [field])


def test_only_the_tenants_own_agents_are_known(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = other_tenant.agent()

    answers = [
        tenant.post(EXPLAIN, json={"agentId": one, "method": "GET", "url": f"https://{HOST}/"})
        for one in (theirs.id, "nobody")
    ]

    assert [(one.status_code, one.json()["data"]["code"]) for one in answers] == [(404, "agent_absent")] * 2


def test_only_the_tenants_own_routes_count(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    keep_route(other_tenant)

    assert explain(tenant, agent) == {"matched": None, "reason": "no_route", "considered": []}


def test_a_deleted_secret_stops_its_route_and_none_after_it_steps_in(tenant: Tenant, agent: Agent) -> None:
    first, second = keep_route(tenant), keep_route(tenant)

    tenant.ok("DELETE", f"/secrets/{first['secretId']}")

    found = explain(tenant, agent)
    assert (found["matched"], found["reason"]) == (first, "secret_deleted")
    assert reasons(found) == [(first["id"], "matched"), (second["id"], "lower_priority")]


def test_an_expired_secret_stops_its_route(tenant: Tenant, agent: Agent) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=3)
    route = keep_route(tenant, keep_secret(tenant, expiresAt=soon.isoformat()))

    found = eventually(lambda: explain(tenant, agent), lambda told: told["reason"] != "matched")

    assert (found["matched"], found["reason"]) == (route, "secret_expired")
    assert datetime.now(UTC) >= soon - timedelta(milliseconds=100)


@pytest.mark.parametrize("reason", FREEZE)
async def test_a_frozen_agent_or_tenant_gets_nothing(
    tenant: Tenant, agent: Agent, owner: asyncpg.Connection, reason: str
) -> None:
    route = keep_route(tenant)
    await owner.execute(FREEZE[reason], tenant.id)

    found = explain(tenant, agent)

    assert (found["matched"], found["reason"]) == (route, reason)


async def test_nothing_is_sent_and_nothing_is_written(tenant: Tenant, agent: Agent, owner: asyncpg.Connection) -> None:
    counted = (
        "SELECT (SELECT count(*) FROM audit WHERE tenant_id = $1), (SELECT count(*) FROM idempotency WHERE tenant_id = "
        "$1), (SELECT version FROM credential_heads WHERE tenant_id = $1)"
    )
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        place = f"localhost:{upstream.getsockname()[1]}"
        route = keep_route(tenant, hostPattern=place)
        before = await owner.fetchrow(counted, tenant.id)

        answer = tenant.post(
            EXPLAIN,
            json={"agentId": agent.id, "method": "POST", "url": f"https://{place}/"},
            headers={"Idempotency-Key": "asked-before"},
        )

        assert answer.json()["data"]["matched"] == route
        assert await owner.fetchrow(counted, tenant.id) == before
        upstream.setblocking(False)
        with pytest.raises(BlockingIOError):
            upstream.accept()
