"""Quotas of one tenant, or one person; the deployment's file of quotas gives these tenants little."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Client, Tenant, new_tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import new_signer, path_of, signer_body

# Many agents at once are one burst of this.
AT_ONCE = 8


@pytest.fixture
def few(request: pytest.FixtureRequest, service: Service, as_platform: Client) -> Iterator[Tenant]:
    """A tenant of the file."""
    with new_tenant(service, request.param) as tenant:
        yield tenant
    as_platform.ok("DELETE", f"/platform/tenants/{request.param}")


def refusal_of(answer: httpx.Response) -> tuple[int, str, int, int]:
    """The status of a refusal, and its figure; it names a cure."""
    said = answer.json()
    assert said["data"]["code"] == "quota_exceeded", said
    assert "ask the operator for more" in said["error"]
    return answer.status_code, said["data"]["quota"], said["data"]["used"], said["data"]["limit"]


def usage_of(tenant: Client, name: str) -> int:
    found: int = tenant.ok("GET", f"/tenants/{tenant.id}/usage")["quotas"][name]["used"]  # type: ignore[attr-defined]
    return found


def at_once(count: int, act: Any) -> list[httpx.Response]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(act, range(count)))


@pytest.mark.parametrize("few", ["few-agents"], indirect=True)
def test_a_tenant_has_so_many_agents_however_many_it_asks_for_at_once(few: Tenant) -> None:
    answers = at_once(12, lambda number: few.post("/agents", json={"id": f"a{number}", "name": "A"}))
    made = [answer.json()["data"]["id"] for answer in answers if answer.status_code == 201]
    batch = few.post("/agents/batch", json={"agents": [{"id": "b", "name": "B"}]})

    assert len(made) == 3
    assert {refusal_of(answer) for answer in [*answers, batch] if not answer.is_success} == {(409, "agents", 3, 3)}
    few.ok("DELETE", f"/agents/{made[0]}")
    few.ok("POST", "/agents", {"id": "in-its-place", "name": "A"})
    assert usage_of(few, "agents") == 3


@pytest.mark.parametrize("few", ["few-rules"], indirect=True)
def test_rules_of_all_agents_count_together_and_once_for_each_of_a_batch(few: Tenant) -> None:
    long = rule("approved-addresses", addresses=[f"0x{number:040x}" for number in range(1, 21)])
    short = rule("rate-limit", maxTxPerHour=3)
    batch = {"agents": [{"id": f"b{number}", "name": "B"} for number in range(5)], "applyPolicies": [long]}

    refused = few.post("/agents/batch", json=batch)
    assert refusal_of(refused)[:2] == (409, "policyBytes")
    assert usage_of(few, "agents") == 0
    few.ok("POST", "/agents/batch", batch | {"agents": batch["agents"][:2]})
    size = usage_of(few, "policyBytes")
    assert size > 0
    few.ok("POST", "/agents", {"id": "late", "name": "L"})
    # Callers that may change rules have a quarter more, and no more than that; and less is always possible.
    answers = [few.put("/agents/late/policies", json=[long, *[long] * times]) for times in (0, 3)]
    assert [answer.status_code for answer in answers] == [200, 409]
    few.ok("PUT", "/agents/b0/policies", [short])
    assert 0 < usage_of(few, "policyBytes") < size + size // 2


def test_a_batch_has_at_most_a_mebibyte_of_rules(tenant: Tenant) -> None:
    long = rule("approved-addresses", addresses=[f"0x{number:040x}" for number in range(1, 1001)])
    agents = [{"id": f"b{number}", "name": "B"} for number in range(30)]

    refused = tenant.post("/agents/batch", json={"agents": agents, "applyPolicies": [long]})

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "batch_policies_too_large")
    assert tenant.ok("GET", "/agents") == []
    assert len(tenant.ok("POST", "/agents/batch", {"agents": agents[:2], "applyPolicies": [long]})["created"]) == 2


@pytest.mark.parametrize("few", ["few-orders"], indirect=True)
def test_so_many_orders_a_day_and_a_decision_is_none(few: Tenant) -> None:
    agents = [few.agent(rule("auto-approve-threshold", threshold="5")) for _ in range(3)]
    kept = agents[0].sign(value=1, key="a key of mine")
    queued = agents[1].sign(value=6)
    answers = at_once(15, lambda number: agents[number % 3].sign(value=1))
    status = [answer.status_code for answer in answers]

    assert (kept.status_code, queued.status_code) == (200, 202)
    assert status.count(200) == 3
    refused = next(answer for answer in answers if answer.status_code != 200)
    assert {refusal_of(answer) for answer in answers if answer.status_code != 200} == {(429, "ordersPerDay", 5, 5)}
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    # What was answered is answered again, what waits is decided, and what is deleted was written all the same.
    assert agents[0].sign(value=1, key="a key of mine").json() == kept.json()
    few.ok("POST", f"/vault/{agents[1].id}/approve/{queued.json()['data']['txId']}")
    few.ok("DELETE", f"/agents/{agents[1].id}")
    assert agents[0].sign(value=1).status_code == 429
    assert usage_of(few, "ordersPerDay") == 5
    assert usage_of(few, "orders") < 5


@pytest.mark.parametrize("few", ["few-kept"], indirect=True)
def test_refused_orders_are_kept_and_counted_too(few: Tenant) -> None:
    agent = few.agent(rule("approved-addresses", addresses=[ADDRESS]))
    refused = agent.sign(to="0x" + "22" * 20)

    assert refused.status_code == 403
    assert agent.sign().status_code == 200
    assert refusal_of(agent.sign()) == (409, "orders", 2, 2)


@pytest.mark.parametrize("few", ["few-bytes"], indirect=True)
def test_so_many_bytes_a_day_of_orders_and_who_decides_over_rules_has_some_more(few: Tenant) -> None:
    agent = few.agent()
    answers = [agent.sign(data="0x" + "ab" * 4000, gasLimit="500000", chainId=1) for _ in range(6)]
    codes = [answer.status_code for answer in answers]

    assert 1 <= codes.count(200) < 6, [answer.text[:300] for answer in answers]
    status, name, before, limit = refusal_of(answers[-1])
    assert (status, name, limit) == (429, "bytesPerDay", 40_000)
    assert 20_000 < before <= 40_000
    assert usage_of(few, "bytesPerDay") == before
    # The agent wrote what it may, and its rules can still be made.
    few.ok("PUT", f"/agents/{agent.id}/policies", [rule("approved-addresses", addresses=[ADDRESS])])


@pytest.mark.parametrize("few", ["few-changes"], indirect=True)
def test_signers_count_to_the_bytes_of_a_day_and_can_always_be_revoked(service: Service, few: Tenant) -> None:
    agent, noted = few.agent(), {"note": "n" * 4000}
    with closing(member(service, few, "owner", mfa=True)) as admin:
        made = new_signer(admin, agent, metadata=noted)
        before = usage_of(few, "bytesPerDay")
        one, body = path_of(agent, "signers", made["id"]), signer_body("more", metadata=noted)
        answers = [admin.post(path_of(agent, "signers"), json=body) for _ in range(10)]

        codes = [answer.status_code for answer in answers]
        assert 2 <= codes.count(201) < 10, [answer.text[:300] for answer in answers]
        status, name, _, limit = refusal_of(answers[-1])
        assert (status, name, limit) == (429, "bytesPerDay", 50_000)
        assert usage_of(few, "bytesPerDay") - before >= 4000 * codes.count(201)
        assert admin.ok("DELETE", one)["status"] == "revoked"


async def test_of_a_long_order_that_is_refused_little_is_kept(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(rule("approved-addresses", addresses=[ADDRESS]))
    other, data = "0x" + "22" * 20, "0x" + "ab" * 10_000

    short = agent.sign(to=other, data="0xabcdef01", gasLimit="90000", chainId=1)
    long = agent.sign(to=other, data=data, gasLimit="500000", chainId=1)

    assert (short.status_code, long.status_code) == (403, 403)
    sizes = await owner.fetch(
        "SELECT id::text, data, order_text, digest, policy_results, pg_column_size(t) AS size FROM transactions t "
        "WHERE tenant_id = $1 ORDER BY created_at",
        tenant.id,
    )
    assert [row["data"] for row in sizes] == ["0xabcdef01", None]
    assert sizes[1]["order_text"] == ""
    assert sizes[1]["size"] < 4096
    assert len(sizes[1]["digest"]) == 32
    shown = agent.ok("GET", f"/vault/{agent.id}/transactions/{sizes[1]['id']}")
    assert shown["data"] is None
    assert shown["effects"]
    assert shown["policyResults"]


@pytest.mark.parametrize("few", ["few-things"], indirect=True)
def test_secrets_routes_webhooks_and_members(
    few: Tenant, service: Service, as_platform: Client, person: Person
) -> None:
    secret = few.ok("POST", "/secrets", {"name": "one", "value": "v"})["id"]
    route = {"secretId": secret, "hostPattern": "api.example.com", "injectAs": "header", "injectKey": "authorization"}
    few.ok("POST", "/secrets/routes", route)
    with closing(member(service, few, "owner", mfa=True)) as owner:
        owner.ok("POST", "/webhooks", {"url": "https://example.com/"})
        answers = [
            few.post("/secrets", json={"name": "two", "value": "v"}),
            few.post("/secrets/routes", json=route),
            owner.post("/webhooks", json={"url": "https://example.com/"}),
            as_platform.post(f"/platform/tenants/{few.id}/members", json={"userId": person.id, "role": "viewer"}),
        ]
        # Who is a member is given another role all the same.
        as_platform.ok(
            "POST", f"/platform/tenants/{few.id}/members", {"userId": owner.id, "role": "admin", "force": True}
        )
        usage = owner.ok("GET", f"/tenants/{few.id}/usage")

    names = ("secrets", "credentialRoutes", "webhooks", "members")
    assert [refusal_of(answer) for answer in answers] == [(409, name, 1, 1) for name in names]
    assert {name: usage["quotas"][name] for name in names} == {name: {"used": 1, "limit": 1} for name in names}
    assert as_platform.ok("GET", f"/platform/tenants/{few.id}/usage") == usage


@contextmanager
def listening(client: Client) -> Iterator[Iterator[str]]:
    with client.stream("GET", "/events") as answer:
        assert answer.status_code == 200, answer.read()
        # Kept, for a stream that nobody reads on is closed.
        lines = answer.iter_lines()
        next(lines)
        yield lines


def test_event_streams_are_limited_over_all_tenants_a_person_made(
    service: Service, person: Person, tenant: Tenant
) -> None:
    keys = [f"{person.id}-a-key-of-a-tenant-{number}" for number in range(3)]
    for number, key in enumerate(keys):
        person.ok("POST", "/tenants", {"id": f"of-{person.id[:8]}-{number}", "name": "His", "apiKeyHash": key})
    with ExitStack() as stack:
        clients = [
            stack.enter_context(Client(base_url=service.url, headers={"X-Service-Key": key}, timeout=30))
            for key in keys
            for _ in range(14)
        ]
        streams = [stack.enter_context(listening(client)) for client in clients[:40]]
        refused = [client.get("/events?follow=false") for client in (clients[40], person)]
        # Others have theirs.
        with listening(tenant):
            assert usage_of(tenant, "eventStreams") == 1

    assert len(streams) == 40
    assert {refusal_of(answer) for answer in refused} == {(429, "eventStreamsPerPerson", 40, 40)}
    assert int(refused[0].headers["Retry-After"]) > 0


@pytest.mark.parametrize("few", ["few-things"], indirect=True)
def test_a_tenant_has_so_many_streams(few: Tenant) -> None:
    with listening(few), Client(base_url=few.base_url, headers=few.headers, timeout=30) as second:
        assert refusal_of(second.get("/events?follow=false")) == (429, "eventStreams", 1, 1)


def test_a_tenant_without_its_own_quota_has_the_default_quota(tenant: Tenant, as_platform: Client) -> None:
    usage = tenant.ok("GET", f"/tenants/{tenant.id}/usage")

    assert usage["tenantId"] == tenant.id
    assert usage["quotas"]["agents"] == {"used": 0, "limit": 1000}
    assert usage["quotas"]["bytesPerDay"] == {"used": 0, "limit": 268_435_456}
    assert usage["resetsAt"].endswith("T00:00:00.000Z")
    absent = as_platform.get("/platform/tenants/nobody-there/usage")
    assert (absent.status_code, absent.json()["data"]["code"]) == (404, "tenant_absent")
