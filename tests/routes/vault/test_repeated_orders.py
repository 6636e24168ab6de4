"""An order that waited for a person, asked for again under its key: what it has come to, for every kind of order."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.authorised import status_and_code
from tests.fixtures.callers import Agent, AsyncClient, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person
from tests.outside.evm_node import EvmNode
from tests.routes.intents.makers import act
from tests.routes.orders import CHAIN, message, note, solana_payment
from tests.routes.vault.bitcoin import LISTED, payment, psbt_body
from tests.routes.vault.transfers import with_signer

KEY = {"Idempotency-Key": "an-order-that-waits"}
WAITS = [
    rule("auto-approve-threshold", threshold="0"),
    rule("auto-approve-threshold", asset="solana:native", threshold="0"),
    rule("auto-approve-threshold", asset="bitcoin", threshold="0"),
    LISTED | {"config": {"chains": [31337, 102, "bitcoin:regtest"]}},
]
# What of an answer is the signature, by the route.
ROUTES = {
    "sign": "signedTransaction",
    "sign-typed-data": "signature",
    "sign-message": "signature",
    "sign-solana": "signature",
    "sign-bitcoin-psbt": "signedPsbtBase64",
    "actions/transfer": "txHash",
}


@pytest.fixture
def careful(as_owner: Person, tenant: Tenant) -> Agent:
    """An agent whose every order waits, with a signer that may authorise all of them."""
    agent = tenant.agent(*WAITS)
    return with_signer(as_owner, agent, "transfer", "sign_transaction", "sign_typed_data", "sign_message", "send_calls")


def body_of(agent: Agent, route: str) -> dict[str, Any]:
    pays = {"to": agent.evm_address, "value": "5", "broadcast": False}
    bodies: dict[str, Callable[[], dict[str, Any]]] = {
        "sign": lambda: pays,
        "sign-typed-data": note,
        "sign-message": lambda: message() | {"chainId": CHAIN},
        "sign-solana": lambda: solana_payment(agent, 5),
        "sign-bitcoin-psbt": lambda: psbt_body(payment(agent, 10_000)),
        "actions/transfer": lambda: pays,
    }
    return bodies[route]()


def ask(agent: Agent, route: str, body: dict[str, Any], **key: str) -> httpx.Response:
    return agent.post(f"/vault/{agent.id}/{route}", json=body, headers={**agent.signer, **key})


def id_of(answer: httpx.Response) -> str:
    data = answer.json()["data"]
    return str(data["transactionId"] if "transactionId" in data else data["txId"])


@pytest.mark.parametrize("route", ROUTES)
def test_an_approved_order_gets_its_signature_under_its_key(route: str, tenant: Tenant, careful: Agent) -> None:
    body = body_of(careful, route)
    first = ask(careful, route, body, **KEY)
    assert first.status_code == 202, first.text
    assert ask(careful, route, body, **KEY).json() == first.json()
    tenant.ok("POST", f"/vault/{careful.id}/approve/{id_of(first)}")

    again, other = ask(careful, route, body, **KEY), ask(careful, route, body)

    assert (first.status_code, again.status_code) == (202, 200), (first.text, again.text)
    assert (id_of(again), again.headers["Idempotency-Replayed"]) == (id_of(first), "true")
    kept = careful.ok("GET", f"/vault/{careful.id}/transactions/{id_of(first)}")
    signature = again.json()["data"][ROUTES[route]]
    assert signature is not None
    assert signature in (kept["signature"], kept["signedTransaction"], kept["txHash"])
    # Without the key it is another order, which nobody approved.
    assert (other.status_code, id_of(other) != id_of(first)) == (202, True)


@pytest.mark.parametrize("route", ROUTES)
def test_a_denied_order_is_refused_under_its_key(route: str, tenant: Tenant, careful: Agent) -> None:
    body = body_of(careful, route)
    first = ask(careful, route, body, **KEY)
    tenant.ok("POST", f"/vault/{careful.id}/reject/{id_of(first)}", {"reason": "no"})

    again = ask(careful, route, body, **KEY)

    assert (again.status_code, again.json()["data"]["code"]) == (403, "approval_denied")
    assert again.json()["error"].startswith("A person denied this")
    assert id_of(again) == id_of(first)
    assert careful.ok("GET", f"/vault/{careful.id}/transactions/{id_of(first)}")["statusDetail"] == "denied"


async def test_an_order_that_expired_says_so_under_its_key(careful: Agent, owner: asyncpg.Connection) -> None:
    body = body_of(careful, "sign")
    approval = ask(careful, "sign", body, **KEY).json()["data"]["approvalId"]
    await owner.execute("UPDATE approvals SET expires_at = service_now() - interval '1 ms' WHERE id = $1", approval)

    again = await soon(lambda: ask(careful, "sign", body, **KEY), lambda answer: answer.status_code == 403, seconds=20)

    assert status_and_code(again) == (403, "approval_denied")
    assert again.json()["error"] == "Nobody approved this order in time."


def test_an_order_that_was_broadcast_is_sent_once(tenant: Tenant, careful: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(careful.evm_address)
    body = body_of(careful, "sign") | {"broadcast": True}
    first = ask(careful, "sign", body, **KEY)
    hashed = tenant.ok("POST", f"/vault/{careful.id}/approve/{id_of(first)}")["txHash"]

    again = [ask(careful, "sign", body, **KEY).json()["data"] for _ in range(3)]

    assert again == [{"txId": id_of(first), "txHash": hashed}] * 3
    assert evm_node.sent_from(careful.evm_address) == 1


def test_freezing_takes_no_answer_away_and_gives_none(tenant: Tenant, careful: Agent) -> None:
    signed, waiting = ({"Idempotency-Key": f"an-order-{name}"} for name in ("signed", "waiting"))
    bodies = [body_of(careful, "sign") | {"value": value} for value in ("5", "6")]
    orders = [ask(careful, "sign", body, **key) for body, key in zip(bodies, (signed, waiting), strict=True)]
    tenant.ok("POST", f"/vault/{careful.id}/approve/{id_of(orders[0])}")
    tenant.ok("POST", f"/agents/{careful.id}/freeze", {})

    again = [ask(careful, "sign", body, **key) for body, key in zip(bodies, (signed, waiting), strict=True)]
    new = ask(careful, "sign", bodies[0])

    assert [answer.status_code for answer in (*again, new)] == [200, 202, 423]
    assert again[1].json() == orders[1].json()


def test_a_revoked_token_gets_no_signature(tenant: Tenant, careful: Agent) -> None:
    body = body_of(careful, "sign")
    first = ask(careful, "sign", body, **KEY)
    tenant.ok("POST", f"/vault/{careful.id}/approve/{id_of(first)}")
    assert ask(careful, "sign", body, **KEY).status_code == 200
    tenant.ok("DELETE", f"/agents/{careful.id}/tokens")

    again = ask(careful, "sign", body, **KEY)

    assert again.status_code == 401
    assert "signedTransaction" not in again.text


def test_another_order_under_the_key_is_a_mismatch_still(tenant: Tenant, careful: Agent) -> None:
    first = ask(careful, "sign", body_of(careful, "sign"), **KEY)
    tenant.ok("POST", f"/vault/{careful.id}/approve/{id_of(first)}")

    other = ask(careful, "sign", body_of(careful, "sign") | {"value": "6"}, **KEY)

    assert status_and_code(other) == (409, "idempotency_mismatch")


async def test_repetitions_and_approvals_at_once_come_to_one_signature(tenant: Tenant, careful: Agent) -> None:
    body = body_of(careful, "sign")
    first = ask(careful, "sign", body, **KEY)
    headers = {**careful.headers, **careful.signer, **KEY}
    async with (
        AsyncClient(base_url=tenant.base_url, headers=tenant.headers, timeout=60) as people,
        AsyncClient(base_url=careful.base_url, headers=headers, timeout=60) as program,
    ):
        approvals = [people.post(f"/vault/{careful.id}/approve/{id_of(first)}", json={}) for _ in range(6)]
        repetitions = [program.post(f"/vault/{careful.id}/sign", json=body) for _ in range(24)]
        answers = await asyncio.gather(*approvals, *repetitions)
    decided, repeated = answers[:6], [*answers[6:], ask(careful, "sign", body, **KEY)]

    assert sorted(one.status_code for one in decided) == [200] + [409] * 5
    assert {one.status_code for one in repeated} <= {200, 202}
    assert len({one.text for one in repeated if one.status_code == 200}) == 1
    assert len(careful.ok("GET", f"/vault/{careful.id}/history")) == 1


def test_an_order_that_tighter_rules_hold_back_waits_still(tenant: Tenant, careful: Agent) -> None:
    body = body_of(careful, "sign")
    first = ask(careful, "sign", body, **KEY)
    tenant.ok("PUT", f"/agents/{careful.id}/policies", [*WAITS, rule("spending-limit", maxPerTransaction="1")])

    approved = tenant.post(f"/vault/{careful.id}/approve/{id_of(first)}", json={})

    assert status_and_code(approved) == (403, "policy_refused")
    assert ask(careful, "sign", body, **KEY).json() == first.json()
    # The control: without the key it is judged by the rules of today.
    assert status_and_code(ask(careful, "sign", body)) == (403, "policy_refused")


def test_a_batch_says_what_its_intent_came_to(as_owner: Person, careful: Agent) -> None:
    batches = [
        {"calls": [{"to": careful.evm_address, "value": value}], "broadcast": False, "referenceId": f"batch-{value}"}
        for value in ("1", "2", "3")
    ]
    first = [ask(careful, "actions/send-calls", batch) for batch in batches]
    done, denied, _ = (answer.json()["data"]["intentId"] for answer in first)
    assert act(as_owner, done, "authorize").status_code == 200
    assert ask(careful, "actions/send-calls", batches[0]).status_code == 202
    executed = act(as_owner, done, "execute").json()["data"]["executionResult"]["transactions"]
    assert act(as_owner, denied, "reject").status_code == 200

    again = [ask(careful, "actions/send-calls", batch) for batch in batches]

    assert [answer.status_code for answer in again] == [200, 403, 202]
    assert (again[0].json()["data"]["transactions"], again[0].json()["data"]["status"]) == (executed, "executed")
    assert (again[1].json()["data"]["code"], again[1].json()["data"]["status"]) == ("approval_denied", "rejected")
    assert again[2].json() == first[2].json()
