"""Proposals that cannot be meant: refused when they are made, with a sentence that names the field."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.server import EVM_CHAIN
from tests.fixtures.signers import new_quorum, new_signer
from tests.routes.intents.makers import act, propose, propose_authorised, status_and_code, transfer

READ = {"method": "eth_chainId", "chainId": EVM_CHAIN}
DAY = 24 * 3600


def _code(value: object) -> str:
    return value if isinstance(value, str) else ""


def rpc(**changed: Any) -> dict[str, Any]:
    return {"intentType": "rpc", "payload": READ, **changed}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"payload": READ}, "intent_type_required"),
        (rpc(intentType="swap"), "bad_body"),
        (rpc(unknown=1), "bad_body"),
        (rpc(authorizationDetails=[{}]), "authorization_details_unsupported"),
        (rpc(authorization_details=[{"a": 1}]), "authorization_details_unsupported"),
        (rpc(intent_type="transfer"), "alias_conflict"),
        (rpc(agentId="a", wallet_id="b"), "alias_conflict"),
        (rpc(resourceId="a", resource_id="b"), "alias_conflict"),
        (rpc(createdByDisplayName="a", created_by_display_name="b"), "alias_conflict"),
        (rpc(ttlSeconds=5, ttl_seconds=6), "alias_conflict"),
        (rpc(ttlSeconds=5, expiresAt="2999-01-01T00:00:00Z"), "two_expiries"),
        (rpc(ttlSeconds=7 * DAY + 1), "ttl_too_long"),
        (rpc(ttlSeconds=0), "bad_body"),
        (rpc(expiresAt=(datetime.now(UTC) + timedelta(days=7, hours=2)).isoformat()), "ttl_too_long"),
        (rpc(expires_at=2**53), "ttl_too_long"),
        (rpc(expiresAt="2001-01-01T00:00:00Z"), "bad_intent_expiry"),
        (rpc(expiresAt="2999-01-01T00:00:00.000"), "bad_intent_expiry"),
        (rpc(expiresAt="next tuesday, at noon"), "bad_intent_expiry"),
        (rpc(resourceId="a b"), "bad_body"),
        (rpc(agentId="nobody"), "agent_absent"),
        ({"intentType": "transfer", "payload": {"to": ADDRESS, "value": "1"}}, "bad_payload"),
    ],
    ids=_code,
)
def test_a_proposal_that_cannot_be_meant_is_refused(tenant: Tenant, body: dict[str, Any], code: str) -> None:
    answer = tenant.post("/intents", json=body)

    assert (answer.status_code, answer.json()["data"]["code"]) == (404 if code == "agent_absent" else 400, code)
    assert tenant.ok("GET", "/intents")["total"] == 0


def test_both_spellings_may_say_the_same(tenant: Tenant) -> None:
    made = propose(tenant, rpc(intent_type="rpc", ttlSeconds=60, ttl_seconds=60, authorizationDetails=[]))

    assert made["intent_type"] == made["intentType"] == "rpc"
    assert made["expires_at"] - made["created_at"] == 60_000
    assert (made["authorizationDetails"], made["authorization_details"]) == ([], [])
    assert made["id"] == made["intent_id"]


def test_three_days_unless_told_otherwise_and_seven_at_most(tenant: Tenant) -> None:
    usual, longest = propose(tenant, rpc()), propose(tenant, rpc(ttlSeconds=7 * DAY))

    assert usual["expires_at"] - usual["created_at"] == 3 * DAY * 1000
    assert longest["expires_at"] - longest["created_at"] == 7 * DAY * 1000


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"to": ADDRESS, "value": "1", "amount": "1"},
        {"to": "0x12", "value": "1"},
        {"to": ADDRESS, "value": -1},
        {"to": ADDRESS, "value": "1", "data": "0xz"},
        {"to": ADDRESS, "value": str(2**256)},
        {"to": ADDRESS, "value": "1", "chainId": "one"},
    ],
    ids=_code,
)
def test_a_payload_of_another_shape_names_its_field(tenant: Tenant, agent: Agent, payload: dict[str, Any]) -> None:
    answer = tenant.post("/intents", json={"intentType": "transfer", "agentId": agent.id, "payload": payload})

    assert answer.status_code == 400
    assert answer.json()["data"]["code"] == "bad_payload" or answer.json()["data"]["fields"] == ["value"]
    assert re.match(r"payload\.\w+|value", answer.json()["error"])


def test_a_payload_has_300000_bytes(tenant: Tenant, agent: Agent) -> None:
    # 262,144 characters of calldata are the longest of an order.
    long = transfer(agent, data="0x" + "00" * 150_000)

    assert tenant.post("/intents", json=long).status_code == 400
    assert tenant.post("/intents", json=rpc(payload={**READ, "params": ["x" * 400_000]})).status_code in (400, 413)


@pytest.mark.parametrize(
    ("kind", "payload", "code"),
    [
        ("policy_update", {"policies": []}, "all_rules"),
        ("policy_update", {"policies": [rule("rate-limit", maxTxPerHour=1)] * 51}, "invalid_policy"),
        ("policy_update", {"policies": [rule("nonsense")]}, "invalid_policy"),
        ("policy_update", {"policies": [rule("spending-limit", maxPerDay="-1")]}, "invalid_policy"),
        ("policy_rule_create", {"rule": {}}, "bad_payload"),
        ("policy_rule_create", {}, "bad_payload"),
        ("policy_rule_update", {"patch": {"enabled": True}}, "bad_payload"),
        ("policy_rule_update", {"ruleId": "a", "rule_id": "b", "patch": {}}, "alias_conflict"),
        ("policy_rule_delete", {"ruleId": ""}, "bad_payload"),
        ("wallet_update", {}, "bad_payload"),
        ("wallet_update", {"display_name": "a", "displayName": "b"}, "alias_conflict"),
        ("wallet_update", {"walletAddress": ADDRESS}, "bad_payload"),
        ("wallet_update", {"tenantId": "other"}, "bad_payload"),
        ("wallet_update", {"erc8004TokenId": "1e3"}, "bad_payload"),
        ("quorum_update", {"action": "create"}, "bad_payload"),
        ("quorum_update", {"action": "revoke"}, "bad_payload"),
        ("quorum_update", {"action": "grow", "quorumId": "x"}, "bad_payload"),
        ("wallet_action", {"action": "mint"}, "bad_payload"),
        ("wallet_action", {"action": "send_calls", "calls": []}, "bad_payload"),
        ("wallet_action", {"to": ADDRESS, "value": "1"}, "bad_payload"),
    ],
    ids=_code,
)
def test_a_change_that_no_set_could_have_is_refused(
    as_owner: Person, agent: Agent, kind: str, payload: dict[str, Any], code: str
) -> None:
    answer = as_owner.post("/intents", json={"intentType": kind, "agentId": agent.id, "payload": payload})

    assert status_and_code(answer) == (400, code)


def test_a_quorum_that_would_contain_itself_fails(as_owner: Person, other_admin: Person, agent: Agent) -> None:
    signer = new_signer(as_owner, agent)["id"]
    inner = new_quorum(as_owner, agent, [signer], threshold=1, name="inner")["id"]
    outer = new_quorum(as_owner, agent, [signer], threshold=1, name="outer", memberQuorumIds=[inner])["id"]
    body = {
        "intentType": "quorum_update",
        "agentId": agent.id,
        "payload": {"action": "update", "quorumId": inner, "memberQuorumIds": [outer]},
    }
    made = propose_authorised(as_owner, other_admin, body)

    done = act(as_owner, made, "execute").json()["data"]

    assert (done["status"], done["executionResult"]["code"]) == ("failed", "quorum_cycle")
    found = {one["id"]: one["memberQuorumIds"] for one in as_owner.ok("GET", f"/agents/{agent.id}/key-quorums")}
    assert found[inner] == []


@pytest.mark.parametrize(
    "method",
    [
        "eth_sendRawTransaction",
        "eth_sendTransaction",
        "eth_sign",
        "personal_sign",
        "debug_traceCall",
        "admin_peers",
        "",
    ],
)
def test_a_method_that_could_change_something_is_refused(tenant: Tenant, method: str) -> None:
    answer = tenant.post("/intents", json=rpc(payload={"method": method, "chainId": EVM_CHAIN}))

    assert status_and_code(answer) in {(400, "rpc_method_not_allowed"), (400, "bad_payload")}


@pytest.mark.parametrize(
    "payload",
    [
        [READ, READ],
        {**READ, "params": ["x" * 17 * 1024]},
        {**READ, "params": "latest"},
        {**READ, "method": ["eth_chainId"]},
        {"method": "eth_chainId"},
        {**READ, "id": 1},
    ],
    ids=["a batch", "17 KiB", "a text", "several", "no chain", "an id"],
)
def test_a_question_of_another_shape_is_refused(tenant: Tenant, payload: Any) -> None:
    assert tenant.post("/intents", json=rpc(payload=payload)).status_code == 400
