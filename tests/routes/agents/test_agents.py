"""Agents and batches of them."""

import asyncio
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, AsyncClient, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.routes.tenants.makers import holding


def test_an_agent_is_created_with_two_wallets(tenant: Tenant) -> None:
    answer = tenant.post("/agents", json={"id": "A_b-c.d:1", "name": "An agent", "platformId": "p-1"})

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert {name: made[name] for name in ("id", "name", "platformId", "tenantId")} == {
        "id": "A_b-c.d:1",
        "name": "An agent",
        "platformId": "p-1",
        "tenantId": tenant.id,
    }
    assert set(made["walletAddresses"]) == {"evm", "solana"}
    assert made["walletAddresses"]["evm"].startswith("0x")
    assert made["walletAddress"] == made["walletAddresses"]["evm"]
    assert made["createdAt"].endswith("Z")
    assert tenant.ok("GET", "/agents/A_b-c.d:1") == made


def test_every_agent_has_wallets_of_its_own(tenant: Tenant) -> None:
    agents = [tenant.agent() for _ in range(3)]

    assert len({agent.evm_address for agent in agents}) == 3
    assert len({agent.solana_address for agent in agents}) == 3


@pytest.mark.parametrize("bad", ["", "x" * 129, "a b", "a/b", "ü", "a\n", "\n", "a\u0000", None, 5, ["a"]])
def test_a_malformed_id_is_400(tenant: Tenant, bad: Any) -> None:
    answer = tenant.post("/agents", json={"id": bad, "name": "x"})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["id"])


@pytest.mark.parametrize("name", ["", None, 5, "x" * 201])
def test_a_malformed_name_is_400(tenant: Tenant, name: Any) -> None:
    assert tenant.post("/agents", json={"id": "named", "name": name}).status_code == 400


def test_a_missing_name_is_named(tenant: Tenant) -> None:
    assert tenant.post("/agents", json={"id": "nameless"}).json()["data"]["fields"] == ["name"]


def test_the_longest_id_is_taken(tenant: Tenant) -> None:
    assert tenant.post("/agents", json={"id": "x" * 128, "name": "x"}).status_code == 201
    assert tenant.get("/agents/" + "x" * 128).status_code == 200


def test_an_id_is_taken_once_within_a_tenant(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    answer = tenant.post("/agents", json={"id": agent.id, "name": "again"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "agent_taken")
    assert other_tenant.post("/agents", json={"id": agent.id, "name": "x"}).status_code == 201


@pytest.mark.parametrize("name", ["batch", "stats", "health", "agents", "-", "a.", ":"])
def test_an_agent_may_have_a_name_that_is_also_a_path(tenant: Tenant, name: str) -> None:
    agent = tenant.agent(agent_id=name)

    assert agent.ok("GET", f"/agents/{name}")["id"] == name
    assert agent.sign().status_code == 200
    assert tenant.ok("DELETE", f"/agents/{name}") == {"deleted": name}


def test_agents_are_listed_newest_first_and_paged(tenant: Tenant) -> None:
    ids = [tenant.agent().id for _ in range(3)]

    answer = tenant.get("/agents?limit=2")

    assert [one["id"] for one in answer.json()["data"]] == ids[:0:-1]
    assert answer.headers["X-Total-Count"] == "3"
    assert [one["id"] for one in tenant.ok("GET", "/agents?limit=2&offset=2")] == ids[:1]
    beyond = tenant.get("/agents?offset=3")
    assert (beyond.json()["data"], beyond.headers["X-Total-Count"]) == ([], "3")


def test_a_tenant_lists_only_its_own(tenant: Tenant, other_tenant: Tenant) -> None:
    tenant.agent()

    assert other_tenant.ok("GET", "/agents") == []


def test_an_agent_reads_itself(agent: Agent) -> None:
    assert agent.ok("GET", f"/agents/{agent.id}")["walletAddresses"]["evm"] == agent.evm_address


async def test_deleting_an_agent_takes_what_it_had(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="5"))
    assert [agent.sign(value=value).status_code for value in (1, 9)] == [200, 202]

    assert tenant.ok("DELETE", f"/agents/{agent.id}") == {"deleted": agent.id}

    for table in ("policy_heads", "policy_rules", "transactions", "approvals", "spend", "rate", "nonces"):
        rows = await owner.fetchval(
            f"SELECT count(*) FROM {table} WHERE tenant_id = $1 AND agent_id = $2", tenant.id, agent.id
        )
        assert rows == 0, table
    assert await owner.fetchval("SELECT count(*) FROM sealed WHERE tenant_id = $1", tenant.id) == 0
    assert tenant.get(f"/agents/{agent.id}").status_code == 404
    assert tenant.delete(f"/agents/{agent.id}").status_code == 404


def test_a_batch_makes_what_it_can_and_names_the_rest(tenant: Tenant, agent: Agent) -> None:
    items = [
        {"id": "one", "name": "One"},
        {"id": agent.id, "name": "Taken"},
        {"id": "one", "name": "Twice"},
        {"id": "a b", "name": "x"},
        {"id": "nameless"},
        {"name": "No id"},
        {"id": "more", "name": "x", "surplus": 1},
        {"id": "two", "name": "Two"},
    ]

    answer = tenant.post("/agents/batch", json={"agents": items})

    result = answer.json()["data"]
    assert answer.status_code == 200
    assert {one["id"] for one in result["created"]} == {"one", "two"}
    assert sorted(str(error["id"]) for error in result["errors"]) == sorted(
        [agent.id, "one", "a b", "nameless", "None", "more"]
    )
    assert all(error["error"] for error in result["errors"])
    assert tenant.ok("GET", "/agents/one")["name"] == "One"


@pytest.mark.parametrize(
    "item", [None, 5, "x", [], {"id": {"deep": 1}, "name": "x"}, {"id": None, "name": "x"}, {"id": 5, "name": "x"}, {}]
)
def test_an_item_of_another_shape_is_an_entry_in_errors(tenant: Tenant, item: Any) -> None:
    answer = tenant.post("/agents/batch", json={"agents": [item, {"id": "good", "name": "x"}]})

    assert answer.status_code == 200, answer.text
    assert [one["id"] for one in answer.json()["data"]["created"]] == ["good"]
    assert len(answer.json()["data"]["errors"]) == 1


def test_a_batch_gives_every_new_agent_the_policies(tenant: Tenant, agent: Agent) -> None:
    policies = [rule("spending-limit", maxPerDay="7"), rule("rate-limit", maxTxPerHour=9)]

    tenant.ok(
        "POST",
        "/agents/batch",
        {"agents": [{"id": "b-1", "name": "x"}, {"id": agent.id, "name": "x"}], "applyPolicies": policies},
    )

    assert [one["type"] for one in tenant.ok("GET", "/agents/b-1/policies")] == ["spending-limit", "rate-limit"]
    assert tenant.ok("GET", f"/agents/{agent.id}/policies") == []


@pytest.mark.parametrize(
    "policies",
    [
        [rule("no-such-type", x=1)],
        [rule("spending-limit")],
        [{"type": "rate-limit", "enabled": 1, "config": {}}],
        "x",
        [None],
    ],
)
def test_bad_policies_fail_the_whole_batch(tenant: Tenant, policies: Any) -> None:
    for agents in ([{"id": "b-1", "name": "x"}], []):
        answer = tenant.post("/agents/batch", json={"agents": agents, "applyPolicies": policies})

        assert answer.status_code == 400, answer.text
    assert tenant.get("/agents/b-1").status_code == 404


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("admin", 200), ("developer", 403)])
def test_of_people_only_an_admin_gives_policies_to_new_agents(
    service: Service, tenant: Tenant, role: str, status: int
) -> None:
    named, policies = [{"id": "with", "name": "x"}], [rule("rate-limit", maxTxPerHour=1)]
    with closing(member(service, tenant, role, mfa=True)) as somebody:
        given = somebody.post("/agents/batch", json={"agents": named, "applyPolicies": policies})
        without = somebody.post("/agents/batch", json={"agents": [{"id": "none", "name": "x"}], "applyPolicies": []})
        with greet(service) as wire:
            body = {"agents": [{"id": "late", "name": "x", "platform_id": None}], "policies": policies}
            outcome = wire.ask("CreateAgents", body, {"kind": "session", "value": somebody.session["token"]})

    assert (given.status_code, without.status_code) == (status, 200)
    assert (outcome["type"] == "Done") == (status == 200)
    if status == 403:
        assert given.json()["data"]["code"] == outcome["code"] == "policies_by_admins"
        assert [one["id"] for one in tenant.ok("GET", "/agents")] == ["none"]


def test_a_batch_of_a_hundred_is_made_and_one_more_is_400(tenant: Tenant) -> None:
    items = [{"id": f"b-{number}", "name": "x"} for number in range(101)]

    too_many = tenant.post("/agents/batch", json={"agents": items})
    made = tenant.ok("POST", "/agents/batch", {"agents": items[:100]})

    assert (too_many.status_code, too_many.json()["data"]["code"]) == (400, "batch_too_large")
    assert (len(made["created"]), made["errors"]) == (100, [])


def test_an_empty_batch_makes_nothing(tenant: Tenant) -> None:
    assert tenant.ok("POST", "/agents/batch", {"agents": []}) == {"created": [], "errors": []}


async def test_an_agent_with_many_orders_goes_in_parts(
    tenant: Tenant, owner: asyncpg.Connection, database: Database
) -> None:
    """A part waits for a row that somebody holds; those before it are gone by then, and others sign meanwhile."""
    doomed, other = tenant.agent(), tenant.agent()
    doomed.sign()
    copies = """
        INSERT INTO transactions SELECT (jsonb_populate_record(t, jsonb_build_object(
                 'id', gen_random_uuid(), 'created_at', t.created_at - make_interval(secs => n)))).*
          FROM transactions t, generate_series(1, 1800) n WHERE agent_id = $1
    """
    await owner.execute(copies, doomed.id)
    count = "SELECT count(*) FROM transactions WHERE tenant_id = $1 AND agent_id = $2"
    holder = await asyncpg.connect(database.owner_url)
    held = holder.transaction()
    await held.start()
    newest = "SELECT FROM transactions WHERE agent_id = $1 ORDER BY created_at DESC LIMIT 1 FOR UPDATE"
    await holder.fetch(newest, doomed.id)

    going = asyncio.get_running_loop().run_in_executor(None, tenant.delete, f"/agents/{doomed.id}")
    left = await soon(lambda: owner.fetchval(count, tenant.id, doomed.id), lambda found: found < 1801, 20)
    meanwhile = other.sign().status_code
    refused = doomed.sign().status_code
    await held.rollback()
    await holder.close()
    answer = await going

    assert 0 < left < 1801
    assert (meanwhile, refused, answer.status_code) == (200, 423, 200)
    assert await owner.fetchval(count, tenant.id, doomed.id) == 0
    assert tenant.get(f"/agents/{doomed.id}").status_code == 404


def test_an_agent_is_renamed_and_found_by_its_id_elsewhere(tenant: Tenant) -> None:
    tenant.ok("POST", "/agents", {"id": "mine", "name": "Before", "platformId": "p-1"})
    tenant.ok("POST", "/agents", {"id": "other", "name": "Other"})

    changed = tenant.ok("PATCH", "/agents/mine", {"platformId": "p-2"})

    assert (changed["name"], changed["platformId"]) == ("Before", "p-2")
    assert [one["id"] for one in tenant.ok("GET", "/agents?platformId=p-2")] == ["mine"]
    assert tenant.ok("GET", "/agents?platformId=p-1") == []
    assert tenant.ok("PATCH", "/agents/mine", {"name": "After", "platformId": None})["platformId"] is None
    assert tenant.ok("GET", "/agents/mine")["name"] == "After"
    assert tenant.ok("PATCH", "/agents/mine", {"displayName": "Treasury"})["displayName"] == "Treasury"
    assert tenant.ok("GET", "/agents?platformId=p-2") == []
    [shown] = [one for one in tenant.ok("GET", "/agents") if one["id"] == "mine"]
    assert (shown["name"], shown["displayName"]) == ("After", "Treasury")
    assert tenant.ok("PATCH", "/agents/mine", {"displayName": None})["displayName"] is None


@pytest.mark.parametrize("body", [{"name": None}, {"name": ""}, {"id": "new"}, {"walletAddresses": {}}])
def test_other_fields_of_an_agent_cannot_be_changed(tenant: Tenant, body: dict[str, Any]) -> None:
    tenant.ok("POST", "/agents", {"id": "fixed", "name": "F"})

    assert tenant.request("PATCH", "/agents/fixed", json=body).status_code == 400


def test_an_agent_that_is_absent_cannot_be_changed(tenant: Tenant) -> None:
    assert tenant.request("PATCH", "/agents/absent", json={"name": "N"}).json()["data"]["code"] == "agent_absent"


async def test_reads_under_way_together_each_get_their_own_answer(
    tenant: Tenant, other_tenant: Tenant, owner: asyncpg.Connection, database: Database
) -> None:
    ids = [tenant.agent().id for _ in range(6)]
    tenant.agent(agent_id="same")
    other_tenant.agent(agent_id="same")
    asked = [*((tenant, one) for one in [*ids, "absent", "same"]), (other_tenant, "same"), (other_tenant, ids[0])]
    reading = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND query LIKE '%agents_named%'"
    )

    async with (
        holding(database, "LOCK TABLE wallets IN ACCESS EXCLUSIVE MODE") as meanwhile,
        AsyncClient(base_url=tenant.base_url, timeout=30) as client,
    ):
        answers = [
            asyncio.create_task(client.get(f"/agents/{one}", headers={"X-Service-Key": who.key})) for who, one in asked
        ]
        # Two of each tenant begin; the others wait for them and not for a connection.
        await soon(lambda: owner.fetchval(reading), 4)
        await meanwhile.execute("ROLLBACK")
        found = await asyncio.gather(*answers)

    assert [answer.status_code for answer in found] == [200] * 6 + [404, 200, 200, 404]
    assert [answer.json()["data"]["id"] for answer in found[:6]] == ids
    assert [answer.json()["data"]["tenantId"] for answer in found[7:9]] == [tenant.id, other_tenant.id]
