"""Intents that change rules, names and quorums: proposed by one person, authorised by another, against what was so."""

from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.signers import new_signer
from tests.routes.intents.makers import act, propose, propose_authorised, state, status_and_code


def intent(kind: str, agent: Agent, **payload: Any) -> dict[str, Any]:
    return {"intentType": kind, "agentId": agent.id, "payload": payload}


def rules(tenant: Tenant, agent: Agent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tenant.ok("GET", f"/agents/{agent.id}/policies")
    return found


def test_a_rule_is_created_changed_and_deleted(as_owner: Person, other_admin: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTx="10"))
    new = {**rule("rate-limit", maxTxPerHour=5), "id": "hourly"}

    for body in (
        intent("policy_rule_create", agent, rule=new),
        intent("policy_rule_update", agent, action="update", ruleId="hourly", patch={"config": {"maxTxPerHour": 2}}),
        intent("policy_rule_update", agent, rule_id="hourly", patch={"enabled": False}),
    ):
        made = propose_authorised(as_owner, other_admin, body)
        done = act(as_owner, made, "execute").json()["data"]
        assert (done["status"], done["executionResult"]["status"]) == ("executed", "replaced")

    _, hourly = rules(tenant, agent)
    assert (hourly["id"], hourly["enabled"], hourly["config"]) == ("hourly", False, {"maxTxPerHour": 2})
    gone = propose_authorised(as_owner, other_admin, intent("policy_rule_delete", agent, ruleId="hourly"))
    assert act(other_admin, gone, "execute").json()["data"]["status"] == "executed"
    assert [one["type"] for one in rules(tenant, agent)] == ["spending-limit"]


def test_the_last_rule_goes_only_when_that_is_said(as_owner: Person, other_admin: Person, tenant: Tenant) -> None:
    agent = tenant.agent({**rule("spending-limit", maxPerTx="10"), "id": "only"})
    made = propose_authorised(as_owner, other_admin, intent("policy_rule_delete", agent, ruleId="only"))

    failed = act(as_owner, made, "execute").json()["data"]

    assert (failed["status"], failed["executionResult"]["code"]) == ("failed", "last_rule")
    said_so = intent("policy_rule_delete", agent, ruleId="only", allowDeleteLastPolicy=True)
    assert (
        act(as_owner, propose_authorised(as_owner, other_admin, said_so), "execute").json()["data"]["status"]
        == "executed"
    )
    assert rules(tenant, agent) == []
    none = as_owner.post("/intents", json=intent("policy_update", agent, policies=[]))
    assert status_and_code(none) == (400, "all_rules")


def test_a_change_that_was_slipped_in_between_makes_it_stale(
    as_owner: Person, other_admin: Person, tenant: Tenant
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTx="10"))
    before = rules(tenant, agent)
    made = propose_authorised(
        as_owner, other_admin, intent("policy_update", agent, policies=[rule("rate-limit", maxTxPerHour=1)])
    )
    # Changed, and changed back: it is stale all the same.
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("rate-limit", maxTxPerDay=9)])
    tenant.ok("PUT", f"/agents/{agent.id}/policies", before)

    done = act(as_owner, made, "execute").json()["data"]

    assert (done["status"], done["executionResult"]["code"]) == ("failed", "stale_state")
    assert rules(tenant, agent) == before


def test_names_change_and_nobody_elses_change_is_overwritten(
    as_owner: Person, other_admin: Person, tenant: Tenant, agent: Agent
) -> None:
    body = intent("wallet_update", agent, name="t-1", displayName="Treasury", platformId="p-1", erc8004TokenId="77")
    made, late = propose_authorised(as_owner, other_admin, body), propose_authorised(as_owner, other_admin, body)

    assert act(as_owner, made, "execute").json()["data"]["status"] == "executed"

    shown = tenant.ok("GET", f"/agents/{agent.id}")
    names = (shown["name"], shown["displayName"], shown["platformId"], shown["erc8004TokenId"])
    assert names == ("t-1", "Treasury", "p-1", "77")
    stale = act(as_owner, late, "execute").json()["data"]
    assert (stale["status"], stale["executionResult"]["code"]) == ("failed", "stale_state")


def test_a_display_name_is_beside_the_name_and_counts_as_what_an_intent_found(
    as_owner: Person, other_admin: Person, tenant: Tenant, agent: Agent
) -> None:
    name = tenant.ok("GET", f"/agents/{agent.id}")["name"]
    set_ = propose_authorised(as_owner, other_admin, intent("wallet_update", agent, display_name="Treasury"))
    assert act(as_owner, set_, "execute").json()["data"]["status"] == "executed"
    taken = propose_authorised(as_owner, other_admin, intent("wallet_update", agent, displayName=None))
    late = propose_authorised(as_owner, other_admin, intent("wallet_update", agent, name="late"))

    before = tenant.ok("GET", f"/agents/{agent.id}")
    assert act(as_owner, taken, "execute").json()["data"]["status"] == "executed"
    after = tenant.ok("GET", f"/agents/{agent.id}")

    assert (before["name"], before["displayName"]) == (name, "Treasury")
    assert (after["name"], after["displayName"]) == (name, None)
    assert act(as_owner, late, "execute").json()["data"]["executionResult"]["code"] == "stale_state"


def test_a_quorum_is_created_changed_and_revoked(as_owner: Person, other_admin: Person, agent: Agent) -> None:
    members = [new_signer(as_owner, agent, subject=f"worker-{number}")["id"] for number in range(2)]
    create = intent(
        "quorum_update", agent, action="create", name="two", threshold=2, memberSignerIds=members,
        permissions=["sign_transaction"],
    )  # fmt: skip

    done = act(as_owner, propose_authorised(as_owner, other_admin, create), "execute").json()["data"]

    assert done["status"] == "executed"
    quorum = done["executionResult"]["quorumId"]
    lower = intent("quorum_update", agent, action="update", quorumId=quorum, threshold=1)
    assert (
        act(as_owner, propose_authorised(as_owner, other_admin, lower), "execute").json()["data"]["status"]
        == "executed"
    )
    assert [one["threshold"] for one in as_owner.ok("GET", f"/agents/{agent.id}/key-quorums")] == [1]
    end = propose_authorised(as_owner, other_admin, intent("quorum_update", agent, action="revoke", quorumId=quorum))
    assert act(as_owner, end, "execute").json()["data"]["executionResult"]["status"] == "revoked"


@pytest.mark.parametrize("kind", ["wallet_update", "policy_update", "policy_rule_create", "quorum_update"])
def test_a_key_proposes_no_change_of_who_may_do_what(tenant: Tenant, agent: Agent, kind: str) -> None:
    payload: dict[str, dict[str, Any]] = {
        "wallet_update": {"name": "x"},
        "policy_update": {"policies": [rule("rate-limit", maxTxPerHour=1)]},
        "policy_rule_create": {"rule": rule("rate-limit", maxTxPerHour=1)},
        "quorum_update": {"action": "revoke", "quorumId": "00000000-0000-4000-8000-000000000000"},
    }

    assert status_and_code(tenant.post("/intents", json=intent(kind, agent, **payload[kind]))) == (
        403,
        "person_required",
    )


def test_the_word_of_a_person_who_lost_the_right_carries_nothing_out(
    as_owner: Person, other_admin: Person, tenant: Tenant, agent: Agent, as_platform: Any
) -> None:
    made = propose_authorised(as_owner, other_admin, intent("wallet_update", agent, name="x"))
    as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": other_admin.id, "role": "viewer"})

    assert status_and_code(act(as_owner, made, "execute")) == (409, "authorization_stale")
    assert state(tenant, made) == "authorized"


def test_another_digest_authorises_nothing(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    made = propose(tenant, {**intent("rpc", agent), "payload": {"method": "eth_chainId", "chainId": 31337}})

    assert status_and_code(act(as_owner, made, "authorize", {"digest": "0" * 64})) == (409, "intent_changed")
    assert state(tenant, made) == "pending"
