"""Batches of calls: judged as one, authorised by a person, and signed all or none."""

import itertools
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.intents.makers import act, status_and_code
from tests.routes.orders import CHAIN, TOKEN_CONTRACT
from tests.routes.vault.transfers import APPROVE, TRANSFER, with_signer

_references = itertools.count(1)
OTHER = "0x" + "22" * 20


def reference() -> str:
    return f"batch-{next(_references)}"


def may_send(owner: Person, agent: Agent) -> Agent:
    """The agent with a signer who may send calls."""
    return with_signer(owner, agent, "send_calls")


def send(agent: Agent, *calls: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {"calls": list(calls), "broadcast": False, **fields}
    return agent.post(f"/vault/{agent.id}/actions/send-calls", json=body, headers=agent.signer)


def pay(value: int = 1, to: str = ADDRESS) -> dict[str, Any]:
    return {"to": to, "value": str(value)}


def call(selector: str, *words: int | str, to: str = TOKEN_CONTRACT) -> dict[str, Any]:
    given = "".join(f"{int(word, 16) if isinstance(word, str) else word:064x}" for word in words)
    return {"to": to, "data": selector + given}


def listing(*selectors: str) -> dict[str, Any]:
    entry = {"address": TOKEN_CONTRACT, "chainId": CHAIN, "selectors": list(selectors)}
    return rule("contract-allowlist", contracts=[entry])


def execute(owner: Person, answer: httpx.Response) -> dict[str, Any]:
    """The intent of a batch, authorised and executed."""
    assert answer.status_code == 202, answer.text
    intent = answer.json()["data"]["intentId"]
    assert act(owner, intent, "authorize").status_code == 200
    done: dict[str, Any] = act(owner, intent, "execute").json()["data"]
    return done


def test_a_batch_becomes_one_transaction_for_each_call(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    may_send(as_owner, agent)

    answer = send(agent, pay(1), pay(2), pay(3))

    data = answer.json()["data"]
    assert (answer.status_code, data["type"], data["status"]) == (202, "send_calls", "pending_approval")
    assert data["actionId"] == data["intentId"]
    done = execute(as_owner, answer)
    assert done["status"] == "executed"
    sent = done["executionResult"]["transactions"]
    assert [one["status"] for one in sent] == ["signed"] * 3
    history = {one["id"]: one for one in tenant.ok("GET", f"/vault/{agent.id}/history")}
    assert [(history[one["txId"]]["value"], history[one["txId"]]["nonce"]) for one in sent] == [
        ("1", 0), ("2", 1), ("3", 2),
    ]  # fmt: skip
    for one in sent:
        assert (
            tenant.ok("GET", f"/vault/{agent.id}/transactions/{one['txId']}/receipt")["receipt"]["txId"] == one["txId"]
        )


@pytest.mark.parametrize(
    ("limits", "calls", "status"),
    [
        (rule("spending-limit", maxPerTx="10"), [pay(6), pay(5)], 403),
        (rule("spending-limit", maxPerTx="10"), [pay(6), pay(4)], 202),
        (rule("spending-limit", maxPerDay="10"), [pay(6), pay(5)], 403),
        (rule("rate-limit", maxTxPerHour=5), [pay()] * 6, 429),
        (rule("rate-limit", maxTxPerHour=5), [pay()] * 5, 202),
        (rule("approved-addresses", addresses=[ADDRESS]), [*[pay()] * 9, pay(to=OTHER)], 403),
        (rule("approved-addresses", addresses=[ADDRESS]), [pay()] * 10, 202),
        (rule("approved-addresses", addresses=[OTHER], mode="blacklist"), [pay(), pay(to=OTHER)], 403),
        (rule("rate-limit", maxTxPerHour=50), [pay(), call(APPROVE, OTHER, 5)], 403),
        (listing(APPROVE), [pay(), call(APPROVE, OTHER, 5)], 202),
        (listing(APPROVE), [call(APPROVE, OTHER, 5), call(TRANSFER, OTHER, 5)], 403),
        (listing("0xdeadbeef"), [call("0xdeadbeef", 1)], 202),
    ],
)
def test_it_is_judged_as_one(
    as_owner: Person, tenant: Tenant, limits: dict[str, Any], calls: list[dict[str, Any]], status: int
) -> None:
    agent = may_send(as_owner, tenant.agent(limits))

    answer = send(agent, *calls)

    assert answer.status_code == status, answer.text
    rows = tenant.ok("GET", f"/vault/{agent.id}/history")
    assert [one["status"] for one in rows] == ([] if status == 202 else ["rejected"])


def test_each_receipt_has_what_its_call_charges_and_all_of_it_counts(as_owner: Person, tenant: Tenant) -> None:
    agent = may_send(as_owner, tenant.agent(rule("spending-limit", maxPerDay="100")))

    done = execute(as_owner, send(agent, pay(30), pay(40)))

    receipts = [
        tenant.ok("GET", f"/vault/{agent.id}/transactions/{one['txId']}/receipt")["receipt"]
        for one in done["executionResult"]["transactions"]
    ]
    spent = [[(one["before"], one["after"]) for one in receipt["budgets"]] for receipt in receipts]
    assert spent == [[("0", "30")], [("30", "70")]]
    assert agent.sign(value=31).status_code == 403
    assert agent.sign(value=30).status_code == 200


def test_a_rule_that_changed_refuses_all_of_it(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    may_send(as_owner, agent)
    answer = send(agent, pay(6), pay(5))
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", maxPerTx="10")])

    done = execute(as_owner, answer)

    assert (done["status"], done["executionResult"]["code"]) == ("failed", "policy_refused")
    assert [one["status"] for one in tenant.ok("GET", f"/vault/{agent.id}/history")] == ["rejected"]


@pytest.mark.parametrize(
    ("calls", "fields", "code"),
    [
        ([], {}, "bad_body"),
        ([pay()] * 17, {}, "bad_body"),
        ([pay(0)], {}, "empty_call"),
        ([{"to": ADDRESS, "data": "0x"}], {}, "empty_call"),
        ([pay()], {"broadcast": True}, "reference_required"),
        ([pay()], {"chainId": 101}, "unsupported_chain"),
        ([{**pay(), "chainId": CHAIN}], {}, "bad_body"),
    ],
)
def test_a_wrong_batch_is_refused_with_its_fault(
    as_owner: Person, agent: Agent, calls: list[dict[str, Any]], fields: dict[str, Any], code: str
) -> None:
    may_send(as_owner, agent)

    assert status_and_code(send(agent, *calls, **fields)) == (400, code)


def test_a_sponsor_is_refused(as_owner: Person, agent: Agent) -> None:
    may_send(as_owner, agent)

    assert status_and_code(send(agent, pay(), sponsor=True)) == (403, "sponsorship_unavailable")


def test_it_needs_a_signer_who_may(as_owner: Person, agent: Agent) -> None:
    agent.signer = {}
    assert status_and_code(send(agent, pay())) == (403, "signer_required")
    with_signer(as_owner, agent, "transfer")
    assert status_and_code(send(agent, pay())) == (403, "signer_permission")


def test_under_one_reference_a_batch_is_made_once(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    may_send(as_owner, agent)
    name = reference()

    first, again = (send(agent, pay(), referenceId=name) for _ in range(2))

    assert first.json()["data"] == again.json()["data"]
    assert status_and_code(send(agent, pay(2), referenceId=name)) == (409, "reference_taken")


def test_a_batch_waits_for_no_nonce_that_was_never_sent(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    may_send(as_owner, agent)
    assert agent.sign().status_code == 200  # signed, and not broadcast
    answer = send(agent, pay(), broadcast=True, referenceId=reference())
    intent = answer.json()["data"]["intentId"]
    assert act(as_owner, intent, "authorize").status_code == 200

    late = act(as_owner, intent, "execute")

    assert late.status_code in {409, 502}
