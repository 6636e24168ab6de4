"""Tenants as the operator sees them."""

import asyncio
import uuid
from typing import Any

import asyncpg
import pytest

from custody.kit import tokens
from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.routes.tenants.makers import holding, somebody_waits


def body(**changed: Any) -> dict[str, Any]:
    return {"id": f"t-{uuid.uuid4().hex[:10]}", "name": "A tenant", **changed}


def test_a_tenant_is_created_with_a_key_that_works(as_platform: Client, as_nobody: Client) -> None:
    answer = as_platform.post("/platform/tenants", json=body(id="created.here:1"))

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert set(made) == {"id", "name", "apiKey", "createdAt"}
    assert made["createdAt"].endswith("Z")
    assert as_nobody.get("/agents", headers={"X-Service-Key": made["apiKey"]}).json() == {"ok": True, "data": []}
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_key_is_stored_only_as_its_hash(as_platform: Client, owner: asyncpg.Connection) -> None:
    made = as_platform.ok("POST", "/platform/tenants", body())

    row = await owner.fetchrow("SELECT * FROM tenant_keys WHERE tenant_id = $1", made["id"])
    assert row["key_hash"] == tokens.digest(made["apiKey"])
    assert not any(made["apiKey"] in str(value) for value in row.values())


def test_a_tenant_id_is_taken_once(as_platform: Client, tenant: Tenant) -> None:
    answer = as_platform.post("/platform/tenants", json=body(id=tenant.id))

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "tenant_taken")


@pytest.mark.parametrize("bad", ["", "x" * 65, "a b", "a/b", "ä", "a\n", "a\x00", None, 7])
def test_a_malformed_tenant_id_is_400(as_platform: Client, bad: Any) -> None:
    answer = as_platform.post("/platform/tenants", json=body(id=bad))

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["id"])


def test_the_longest_tenant_id_is_taken(as_platform: Client) -> None:
    assert as_platform.post("/platform/tenants", json=body(id=uuid.uuid4().hex * 2)).status_code == 201


@pytest.mark.parametrize("path", ["/platform/tenants", "/tenants"])
@pytest.mark.parametrize("policies", [[], None, [{"type": "rate-limit"}], "x"])
def test_default_policies_are_retired_whatever_they_are(as_platform: Client, path: str, policies: Any) -> None:
    answer = as_platform.post(path, json={"id": "a b", "unknown": 1, "defaultPolicies": policies})

    assert (answer.status_code, answer.json()["data"]["code"]) == (410, "default_policies_retired")


def test_setting_policies_of_a_tenant_is_retired(as_platform: Client, as_nobody: Client, tenant: Tenant) -> None:
    path = f"/platform/tenants/{tenant.id}/policies"

    assert as_platform.put(path, json=[rule("rate-limit", maxTxPerHour=1)]).status_code == 410
    assert as_nobody.put(path, json=[]).status_code == 401


def test_a_tenant_is_read_with_the_number_of_its_agents(as_platform: Client, tenant: Tenant) -> None:
    tenant.agent()
    tenant.agent()

    found = as_platform.ok("GET", f"/platform/tenants/{tenant.id}")

    assert set(found) == {"id", "name", "createdAt", "agentCount"}
    assert (found["id"], found["agentCount"]) == (tenant.id, 2)


def test_the_number_of_agents_is_there_when_it_is_none(as_platform: Client, tenant: Tenant) -> None:
    assert as_platform.ok("GET", f"/platform/tenants/{tenant.id}")["agentCount"] == 0


def test_an_absent_tenant_is_404(as_platform: Client) -> None:
    answers = [as_platform.get("/platform/tenants/absent"), as_platform.delete("/platform/tenants/absent")]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(404, "tenant_absent")] * 2


def test_tenants_are_listed_newest_first(as_platform: Client) -> None:
    first, second = (as_platform.ok("POST", "/platform/tenants", body())["id"] for _ in range(2))

    answer = as_platform.get("/platform/tenants?limit=2")
    later = as_platform.ok("GET", "/platform/tenants?limit=1&offset=1")

    assert [one["id"] for one in answer.json()["data"]] == [second, first]
    assert [one["id"] for one in later] == [first]
    assert int(answer.headers["X-Total-Count"]) >= 2


def test_stats_count_tenants_agents_and_transactions(as_platform: Client, tenant: Tenant) -> None:
    before = as_platform.ok("GET", "/platform/stats")

    tenant.agent().sign()

    after = as_platform.ok("GET", "/platform/stats")
    assert {name: after[name] - before[name] for name in after} == {"tenants": 0, "agents": 1, "transactions": 1}


async def test_deleting_a_tenant_takes_everything_it_had(
    as_platform: Client, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="5"))
    assert [agent.sign(value=value).status_code for value in (1, 9)] == [200, 202]
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {})

    assert as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}") == {"deleted": tenant.id}

    for table in (
        "tenant_keys",
        "tenant_config",
        "agents",
        "sealed",
        "policy_rules",
        "transactions",
        "approvals",
        "spend",
        "nonces",
    ):
        assert await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant.id) == 0, table
    assert as_platform.get(f"/platform/tenants/{tenant.id}").status_code == 404


async def test_a_key_that_is_revoked_while_its_deletion_waits_deletes_nothing(
    service: Service, as_platform: Client, tenant: Tenant, database: Database, owner: asyncpg.Connection
) -> None:
    tenant.agent()
    key_id, key = _scoped_key(service)
    with Client(base_url=service.url, headers={"X-Service-Platform-Key": key}, timeout=30) as operator:
        async with holding(database, "SELECT FROM agents WHERE tenant_id = $1 FOR UPDATE", tenant.id):
            deleting = asyncio.create_task(asyncio.to_thread(operator.delete, f"/platform/tenants/{tenant.id}"))
            await somebody_waits(owner, "delete_tenant")
            assert _as_operator(service, "RevokePlatformKey", {"key": key_id})["type"] == "Done"
        answer = await deleting

    assert answer.status_code == 401
    assert as_platform.get(f"/platform/tenants/{tenant.id}").status_code == 200


async def test_a_revocation_waits_for_the_tenant_that_its_key_is_making(
    service: Service, as_platform: Client, database: Database, owner: asyncpg.Connection
) -> None:
    key_id, key = _scoped_key(service)
    wanted = body()
    taken = "INSERT INTO tenants (id, name) VALUES ($1, 'x')"
    with Client(base_url=service.url, headers={"X-Service-Platform-Key": key}, timeout=30) as operator:
        async with holding(database, taken, wanted["id"]) as meanwhile:
            making = asyncio.create_task(asyncio.to_thread(operator.post, "/platform/tenants", json=wanted))
            await somebody_waits(owner, "create_tenant")
            revoking = asyncio.create_task(
                asyncio.to_thread(_as_operator, service, "RevokePlatformKey", {"key": key_id})
            )
            await somebody_waits(owner, "UPDATE platform_keys")
            await meanwhile.execute("ROLLBACK")
            answer, revoked = await making, await revoking

    # The key held until its tenant was there, and not a moment longer.
    assert (answer.status_code, revoked["type"]) == (201, "Done")
    as_platform.ok("DELETE", f"/platform/tenants/{wanted['id']}")


def test_a_deleted_tenant_cannot_be_acted_for(as_platform: Client, tenant: Tenant) -> None:
    agent = tenant.agent()
    as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}")

    answers = [
        agent.sign(),
        tenant.post("/agents", json={"id": "late", "name": "x"}),
        tenant.delete(f"/agents/{agent.id}"),
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 401]


def test_a_scoped_platform_key_does_only_what_its_scopes_say(service: Service, as_platform: Client) -> None:
    made = _as_operator(service, "CreatePlatformKey", {"name": "a reader", "scopes": ["platform:tenant:read"]})["data"]
    headers = {"X-Service-Platform-Key": made["key"]}

    read = as_platform.request("GET", "/platform/stats", headers=headers)
    write = as_platform.request("POST", "/platform/tenants", json=body(), headers=headers)

    assert (read.status_code, write.status_code) == (200, 403)
    assert write.json()["data"]["code"] == "missing_scope"


def _as_operator(service: Service, name: str, said: dict[str, Any]) -> Any:
    with greet(service, "operator") as wire:
        return wire.ask(name, said, {"kind": "platform_key", "value": service.platform_key})


def _scoped_key(service: Service) -> tuple[str, str]:
    made = _as_operator(service, "CreatePlatformKey", {"name": "a test", "scopes": ["platform:tenant:write"]})["data"]
    return made["id"], made["key"]
