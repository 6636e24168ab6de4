"""A tenant and its configuration."""

import hashlib
import uuid
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

FLAGS = {
    "showFundingQR",
    "showTransactionHistory",
    "showSpendDashboard",
    "showPolicyControls",
    "showApprovalQueue",
    "showSecretManager",
    "enableSolana",
    "showChainSelector",
    "allowAddressExport",
}
APPROVALS = {
    "autoExpireSeconds": 86_400,
    "approvers": {"mode": "owner"},
    "webhookCallbackEnabled": False,
    "uncoveredEffects": "queue",
}


def registration(**changed: Any) -> dict[str, Any]:
    return {"id": f"t-{uuid.uuid4().hex[:10]}", "name": "A tenant", "apiKeyHash": uuid.uuid4().hex * 2, **changed}


def test_a_tenant_may_bring_its_key_or_the_hash_of_it(as_platform: Client, as_nobody: Client) -> None:
    raw, hashed = "a raw key".replace(" ", "-") + uuid.uuid4().hex, "another-key-" + uuid.uuid4().hex
    sent = {raw: raw, hashed: hashlib.sha256(hashed.encode()).hexdigest()}

    for key, given in sent.items():
        answer = as_platform.post("/tenants", json=registration(apiKeyHash=given))

        made = answer.json()["data"]
        assert answer.status_code == 201, answer.text
        assert set(made) == {"id", "name", "apiKeyHash", "createdAt"}
        assert made["apiKeyHash"] == hashlib.sha256(key.encode()).hexdigest()
        assert as_nobody.get(f"/tenants/{made['id']}", headers={"X-Service-Key": key}).status_code == 200


def test_a_key_belongs_to_one_tenant(as_platform: Client) -> None:
    first = registration()
    as_platform.ok("POST", "/tenants", first)

    answer = as_platform.post("/tenants", json=registration(apiKeyHash=first["apiKeyHash"]))

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "tenant_key_taken")


@pytest.mark.parametrize(
    "bad", ["", "x" * 31, "x" * 257, "with a space in it and long enough", "x" * 40 + "\n", None, 1]
)
def test_a_key_too_weak_or_malformed_is_400(as_platform: Client, bad: Any) -> None:
    answer = as_platform.post("/tenants", json=registration(apiKeyHash=bad))

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["apiKeyHash"])


@pytest.mark.parametrize("missing", ["id", "name", "apiKeyHash"])
def test_a_missing_field_is_named(as_platform: Client, missing: str) -> None:
    given = registration()
    del given[missing]

    answer = as_platform.post("/tenants", json=given)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [missing])


def test_the_log_of_the_platform_cannot_be_taken_as_a_tenant(as_platform: Client) -> None:
    assert as_platform.post("/tenants", json=registration(id="platform")).status_code == 400


def test_a_tenant_reads_itself(tenant: Tenant) -> None:
    found = tenant.ok("GET", f"/tenants/{tenant.id}")

    assert (found["id"], found["name"]) == (tenant.id, "A tenant")


def test_without_a_saved_configuration_everything_is_on(tenant: Tenant) -> None:
    config = tenant.ok("GET", f"/tenants/{tenant.id}/config")

    assert config["tenantId"] == tenant.id
    assert config["featureFlags"] == dict.fromkeys(FLAGS, True)
    assert config["approvalConfig"] == APPROVALS
    assert config["policyExposure"] == {}


def test_a_configuration_is_replaced_as_a_whole(tenant: Tenant) -> None:
    path = f"/tenants/{tenant.id}/config"
    first = {
        "displayName": "Shown",
        "policyExposure": {"spending-limit": "visible", "rate-limit": "hidden"},
        "featureFlags": {"enableSolana": False},
        "approvalConfig": {"autoExpireSeconds": 60},
    }

    stored = tenant.ok("PUT", path, first)
    emptied = tenant.ok("PUT", path, {})

    assert (stored["displayName"], stored["policyExposure"]) == ("Shown", first["policyExposure"])
    assert stored["featureFlags"]["enableSolana"] is False
    assert stored["featureFlags"]["showFundingQR"] is True
    assert stored["approvalConfig"]["autoExpireSeconds"] == 60
    assert (emptied["displayName"], emptied["policyExposure"], emptied["approvalConfig"]) == (None, {}, APPROVALS)


def test_the_answer_of_get_is_accepted_by_put(tenant: Tenant) -> None:
    path = f"/tenants/{tenant.id}/config"
    tenant.ok("PUT", path, {"displayName": "Shown", "featureFlags": {"enableSolana": False}})
    seen = tenant.ok("GET", path)

    assert tenant.ok("PUT", path, seen) == seen == tenant.ok("GET", path)


@pytest.mark.parametrize(
    "bad",
    [
        {"featureFlags": {"showEverything": True}},
        {"featureFlags": {"enableSolana": "yes"}},
        {"featureFlags": []},
        {"policyExposure": {"spending-limit": "secret"}},
        {"policyExposure": {"no-such-policy": "visible"}},
        {"approvalConfig": {"autoExpireSeconds": -1}},
        {"approvalConfig": {"autoExpireSeconds": 1.5}},
        {"approvalConfig": {"autoExpireSeconds": True}},
        {"approvalConfig": {"approvers": {"mode": "anybody"}}},
        {"approvalConfig": {"uncoveredEffects": "sign"}},
        {"approvalConfig": {"surplus": 1}},
        {"approvalConfig": None},
        {"tenantId": "somebody-else"},
        {"displayName": ""},
        {"displayName": "x" * 201},
        {"displayName": "a\u0000b"},
    ],
    ids=str,
)
def test_a_bad_configuration_is_400_and_nothing_is_stored(tenant: Tenant, bad: dict[str, Any]) -> None:
    path = f"/tenants/{tenant.id}/config"
    before = tenant.ok("GET", path)

    answer = tenant.put(path, json=bad)

    assert answer.status_code == 400, answer.text
    assert answer.json()["data"]["fields"], "what is wrong is named"
    assert tenant.ok("GET", path) == before


def test_one_tenants_configuration_is_not_anothers(tenant: Tenant, other_tenant: Tenant) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"displayName": "Mine"})

    assert other_tenant.ok("GET", f"/tenants/{other_tenant.id}/config")["displayName"] is None


def test_how_long_an_approval_waits_is_the_configurations_word(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    for seconds in (60, 0):
        tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"approvalConfig": {"autoExpireSeconds": seconds}})
        agent.sign()

    newest, older = tenant.ok("GET", "/approvals")

    assert newest["expiresAt"] is None
    assert older["expiresAt"] > older["requestedAt"]


@pytest.mark.parametrize(("word", "status"), [("queue", 202), ("allow", 200), ("refuse", 403)])
def test_an_uncovered_order_follows_the_configuration(tenant: Tenant, word: str, status: int) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"approvalConfig": {"uncoveredEffects": word}})
    agent = tenant.agent(rule("spending-limit", maxPerDay="1000", asset="evm:31337:0x" + "33" * 20))

    assert agent.sign(value=1).status_code == status


def test_a_person_who_makes_a_tenant_becomes_its_owner(person: Person, as_nobody: Client) -> None:
    given = registration(apiKeyHash="a-key-of-its-own-" + uuid.uuid4().hex)

    answer = person.post("/tenants", json=given)

    assert (answer.status_code, answer.json()["data"]["id"]) == (201, given["id"])
    assert person.switch(given["id"])["tenant"] == {"id": given["id"], "name": "A tenant", "role": "owner"}
    headers = {"X-Service-Key": given["apiKeyHash"]}
    assert as_nobody.get(f"/tenants/{given['id']}", headers=headers).status_code == 200


@pytest.mark.parametrize("taken", ["personal-x", "platform"])
def test_a_person_takes_no_reserved_id(person: Person, taken: str) -> None:
    assert person.post("/tenants", json=registration(id=taken)).status_code == 400


def test_other_callers_cannot_create_tenants(tenant: Tenant, agent: Agent, as_nobody: Client) -> None:
    answers = [one.post("/tenants", json=registration()) for one in (tenant, agent, as_nobody)]

    assert [answer.status_code for answer in answers] == [403, 403, 401]


def test_the_webhook_of_a_tenant_is_retired_for_everybody(
    service: Service, tenant: Tenant, agent: Agent, as_platform: Client, as_nobody: Client
) -> None:
    path = f"/tenants/{tenant.id}/webhook"
    with closing(member(service, tenant, "viewer")) as viewer:
        answers = [one.put(path, json={"webhookUrl": 7}) for one in (tenant, agent, as_platform, viewer)]

    assert {answer.status_code for answer in answers} == {410}
    assert {answer.json()["data"]["code"] for answer in answers} == {"tenant_webhook_retired"}
    assert as_nobody.put(path, json={}).status_code == 401


async def test_no_part_of_a_key_that_a_tenant_chose_is_written_down(
    service: Service, as_platform: Client, owner: asyncpg.Connection
) -> None:
    key = f"letmein-{uuid.uuid4().hex}"
    made = as_platform.post("/tenants", json=registration(apiKeyHash=key)).json()["data"]
    with Client(base_url=service.url, headers={"X-Service-Key": key}) as chosen:
        assert chosen.post("/agents", json={"id": "one", "name": "One"}).status_code == 201

    rows = await owner.fetch("SELECT actor_id, metadata FROM audit WHERE tenant_id = $1", made["id"])

    assert [row for row in rows if "letme" in str(row)] == []
    assert f"tenant-key:sha256:{made['apiKeyHash'][:8]}" in {row["actor_id"] for row in rows}
