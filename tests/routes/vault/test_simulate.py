"""Simulation of signing: equal to what signing then does, and nothing is written."""

from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.orders import mail, note, permit, solana_payment, unknown_instruction

ROUTES = {"evm": "sign", "typed_data": "sign-typed-data", "solana": "sign-solana"}
LIMIT = rule("spending-limit", maxPerTransaction="500", maxPerDay="1000", maxPerWeek="5000")
RULES = (LIMIT, rule("auto-approve-threshold", threshold="100"), rule("allowed-chains", chains=[31337, 102]))
NOT_LISTED = {"to": OTHER_ADDRESS, "value": "1", "broadcast": False}
TABLES = ("transactions", "approvals", "spend", "rate", "nonces", "idempotency", "audit", "outbox", "event_marks")


def payment(value: int | str = 1, **fields: Any) -> dict[str, Any]:
    return {"to": ADDRESS, "value": str(value), "broadcast": False, **fields}


def simulate(client: httpx.Client, agent: Agent, kind: str, request: Any, **headers: str) -> httpx.Response:
    return client.post(f"/vault/{agent.id}/simulate", json={"kind": kind, "request": request}, headers=headers)


def ask_to_sign(agent: Agent, kind: str, request: Any) -> httpx.Response:
    return agent.post(f"/vault/{agent.id}/{ROUTES[kind]}", json=request)


def decision_of(answer: httpx.Response) -> str:
    """The decision behind an answer of a signing route."""
    return {200: "sign", 202: "queue", 403: "refuse", 429: "refuse"}[answer.status_code]


def judgement_of(agent: Agent, answer: httpx.Response) -> tuple[str, Any, Any]:
    """Decision, results and effects of an order that was signed, queued or refused."""
    order = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")
    return decision_of(answer), order["policyResults"], order["effects"]


# Orders of every kind and fate; each is asked about first, and then sent.
ORDERS: dict[str, tuple[str, Any]] = {
    "signed": ("evm", lambda agent: payment(100)),
    "queued": ("evm", lambda agent: payment(101)),
    "refused": ("evm", lambda agent: payment(501)),
    "uncovered": ("evm", lambda agent: payment(0, data="0xdeadbeef")),
    "own fees": ("evm", lambda agent: payment(1, gasLimit="30000", maxFeePerGas="5", maxPriorityFeePerGas="1")),
    "own nonce": ("evm", lambda agent: payment(1, nonce=3)),
    "another chain": ("evm", lambda agent: payment(1, chainId=8453)),
    "a note": ("typed_data", lambda agent: note()),
    "a mail": ("typed_data", lambda agent: mail()),
    "a permit": ("typed_data", lambda agent: permit(agent.evm_address, 5)),
    "a Solana payment": ("solana", lambda agent: solana_payment(agent, 7)),
    "a large Solana payment": ("solana", lambda agent: solana_payment(agent, 700)),
}
MISTAKEN: dict[str, tuple[str, Any]] = {
    "an unknown chain": ("evm", lambda agent: payment(1, chainId=999)),
    "a value beyond 256 bits": ("evm", lambda agent: payment(2**256)),
    "a fee above the cap": ("evm", lambda agent: payment(1, maxFeePerGas=str(10**18))),
    "too little gas": ("evm", lambda agent: payment(1, gasLimit="20999")),
    "a nonce far ahead": ("evm", lambda agent: payment(1, nonce=20_000)),
    "a bad document": ("typed_data", lambda agent: {**note(), "primaryType": "Other"}),
    "an unknown instruction": ("solana", unknown_instruction),
    "a declared value that is not the real one": ("solana", lambda agent: {**solana_payment(agent, 7), "value": "8"}),
}


@pytest.mark.parametrize("name", ORDERS)
def test_simulating_says_what_signing_then_does(tenant: Tenant, name: str) -> None:
    agent = tenant.agent(*RULES)
    kind, make = ORDERS[name]
    order = make(agent)

    said = simulate(agent, agent, kind, order).json()["data"]

    assert (said["decision"], said["results"], said["effects"]) == judgement_of(agent, ask_to_sign(agent, kind, order))


@pytest.mark.parametrize("name", MISTAKEN)
def test_orders_refused_before_judgement_are_refused_alike(agent: Agent, name: str) -> None:
    kind, make = MISTAKEN[name]
    order = make(agent)

    asked, sent = simulate(agent, agent, kind, order), ask_to_sign(agent, kind, order)

    assert 400 <= sent.status_code < 500
    assert (asked.status_code, asked.json()) == (sent.status_code, sent.json())


def test_a_frozen_agent_is_423_as_when_signing(tenant: Tenant, agent: Agent) -> None:
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "tried"})

    answers = [simulate(agent, agent, "evm", payment()), ask_to_sign(agent, "evm", payment())]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(423, "frozen")] * 2


async def test_nothing_is_written_and_nothing_counts(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(*RULES, rule("rate-limit", maxTxPerHour=2))
    # The change of the rules is an event, which the scheduler takes out of the outbox meanwhile.
    await soon(lambda: owner.fetchval("SELECT count(*) FROM outbox WHERE tenant_id = $1", tenant.id), 0)
    before = {table: await rows_of(owner, table, tenant.id) for table in TABLES}

    for _ in range(5):
        for value in (100, 101, 501):
            assert simulate(agent, agent, "evm", payment(value)).status_code == 200

    assert {table: await rows_of(owner, table, tenant.id) for table in TABLES} == before
    assert agent.sign(value=100).status_code == 200
    assert await rows_of(owner, "transactions", tenant.id) == before["transactions"] + 1


async def rows_of(owner: asyncpg.Connection, table: str, tenant: str) -> int:
    return int(await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant))


def test_budgets_say_what_is_spent_and_left(tenant: Tenant) -> None:
    agent = tenant.agent(*RULES)
    assert agent.sign(value=60).status_code == 200
    rule_id = tenant.ok("GET", f"/agents/{agent.id}/policies")[0]["id"]

    said = simulate(tenant, agent, "evm", payment(100)).json()["data"]

    common = {"policyId": rule_id, "asset": "evm:native", "spent": "60"}
    assert said["budgets"] == [
        {**common, "window": "day", "limit": "1000", "remaining": "940"},
        {**common, "window": "week", "limit": "5000", "remaining": "4940"},
    ]
    assert said["fee"]["asset"] == "evm:native"
    assert said["fee"]["max"] == next(effect["amount"] for effect in said["effects"] if effect["kind"] == "fee")


def test_a_document_has_no_fee(agent: Agent) -> None:
    assert simulate(agent, agent, "typed_data", note()).json()["data"]["fee"] is None


def test_needed_names_what_stands_in_the_way(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(*RULES)

    def needs(value: int, **fields: Any) -> list[str]:
        return simulate(agent, agent, "evm", payment(value, **fields)).json()["data"]["needed"]

    assert needs(1, broadcast=True) == needs(1) == ["funds"]
    assert needs(101, broadcast=True) == ["approval", "funds"]
    # Nothing helps an order that a rule refuses; 8453 has no node here.
    assert needs(501, broadcast=True) == []
    evm_node.fund(agent.evm_address)
    assert needs(1, broadcast=True) == []
    assert needs(101) == ["approval"]
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [])
    assert needs(1, broadcast=True, chainId=8453) == ["rpc"]
    assert needs(1, chainId=8453) == []


def test_an_order_that_the_node_rejects_fails_alike(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    order = {"to": evm_node.deploy(bytes.fromhex("60006000fd")), "value": "0", "data": "0xdeadbeef"}

    asked, sent = simulate(agent, agent, "evm", order), ask_to_sign(agent, "evm", order)

    assert (sent.status_code, sent.json()["data"]["code"]) == (502, "estimate_failed")
    assert (asked.status_code, asked.json()["data"]["code"]) == (502, "estimate_failed")


def test_a_key_may_come_along_and_is_not_used_up(agent: Agent) -> None:
    key = {"Idempotency-Key": "a-question-asked-twice"}

    answers = [simulate(agent, agent, "evm", payment(value), **key) for value in (1, 1, 2)]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert "Idempotency-Replayed" not in answers[1].headers
    assert agent.sign(key="a-question-asked-twice").status_code == 200


def test_the_tenant_may_ask_and_another_tenant_finds_nothing(tenant: Tenant, other_tenant: Tenant) -> None:
    agent, other = tenant.agent(), tenant.agent()

    assert simulate(tenant, agent, "evm", payment()).json()["data"]["decision"] == "sign"
    assert simulate(other_tenant, agent, "evm", payment()).status_code == 404
    assert simulate(other, agent, "evm", payment()).status_code == 403


def test_a_revoked_token_asks_nothing(tenant: Tenant, agent: Agent) -> None:
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")

    assert simulate(agent, agent, "evm", payment()).status_code == 401


def test_a_viewer_may_ask_without_a_second_factor(service: Service, tenant: Tenant, agent: Agent) -> None:
    with closing(member(service, tenant, "viewer")) as viewer:
        assert simulate(viewer, agent, "evm", payment()).status_code == 200
    with closing(member(service, tenant, "member")) as end_user:
        assert simulate(end_user, agent, "evm", payment()).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "evm"},
        {"kind": "bitcoin", "request": {}},
        {"kind": "evm", "request": note()},
        {"kind": "evm", "request": {**payment(), "surplus": 1}},
        {"kind": "evm", "request": payment(), "surplus": 1},
        {"request": payment()},
        [],
        {"kind": "typed_data", "request": payment()},
    ],
    ids=repr,
)
def test_a_body_that_is_no_question_is_400(agent: Agent, body: Any) -> None:
    assert agent.post(f"/vault/{agent.id}/simulate", json=body).status_code == 400


values = st.one_of(st.integers(0, 130), st.integers(450, 550), st.sampled_from([100, 101, 500, 501, 2**255]))
steps = st.tuples(values, st.sampled_from([ADDRESS, OTHER_ADDRESS]), st.sampled_from([None, "0x", "0xdeadbeef"]))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(orders=st.lists(steps, min_size=4, max_size=9))
def test_whatever_was_signed_before_the_next_answer_is_foreseen(tenant: Tenant, orders: list[Any]) -> None:
    agent = tenant.agent(*RULES, rule("rate-limit", maxTxPerHour=5))
    for value, to, data in orders:
        order = {"to": to, "value": str(value), "broadcast": False, **({"data": data} if data else {})}

        said = simulate(agent, agent, "evm", order).json()["data"]

        assert (said["decision"], said["results"], said["effects"]) == judgement_of(
            agent, ask_to_sign(agent, "evm", order)
        )
