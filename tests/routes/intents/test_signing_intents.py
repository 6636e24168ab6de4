"""Intents that sign: the path of every order, claimed once."""

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.intents.makers import act, propose, propose_authorised, state, status_and_code, transfer


def test_an_authorised_transfer_is_signed_and_found_in_the_history(
    as_owner: Person, tenant: Tenant, agent: Agent
) -> None:
    intent = propose_authorised(tenant, as_owner, transfer(agent, 5))
    assert intent["status"] == "authorized"
    assert intent["authorizedBy"] == as_owner.id

    done = as_owner.ok("POST", f"/intents/{intent['id']}/execute", {})

    assert done["status"] == "executed"
    result = done["executionResult"]
    assert done["execution_result"] == result
    assert result["status"] == "signed"
    history = tenant.ok("GET", f"/vault/{agent.id}/history")
    assert [(one["id"], one["value"], one["toAddress"]) for one in history] == [(result["txId"], "5", ADDRESS)]


def test_the_person_who_proposes_may_not_authorise(as_owner: Person, other_admin: Person, agent: Agent) -> None:
    intent = propose(as_owner, transfer(agent))

    assert status_and_code(act(as_owner, intent, "authorize")) == (403, "own_intent")
    assert act(other_admin, intent, "approve").status_code == 200
    assert act(as_owner, intent, "execute").json()["data"]["status"] == "executed"


def test_todays_rules_decide_and_a_refusal_is_final(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTx="10"))
    intent = propose_authorised(tenant, as_owner, transfer(agent, 11))

    done = act(as_owner, intent, "execute").json()["data"]

    assert done["status"] == "failed"
    assert done["executionResult"]["code"] == "policy_refused"
    assert [one["passed"] for one in done["executionResult"]["results"]] == [False]
    assert status_and_code(act(as_owner, intent, "execute")) == (409, "intent_not_authorized")
    assert state(tenant, intent) == "failed"
    assert [one["status"] for one in tenant.ok("GET", f"/vault/{agent.id}/history")] == ["rejected"]


def test_a_person_agreed_so_a_threshold_no_longer_queues(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="10"))
    intent = propose_authorised(tenant, as_owner, transfer(agent, 1000))

    assert act(as_owner, intent, "execute").json()["data"]["status"] == "executed"


def test_a_full_rate_limit_leaves_it_authorised(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1))
    assert agent.sign().status_code == 200
    intent = propose_authorised(tenant, as_owner, transfer(agent))

    late = act(as_owner, intent, "execute")

    assert status_and_code(late) == (429, "policy_rate_limited")
    assert int(late.headers["retry-after"]) > 1
    assert state(tenant, intent) == "authorized"
