"""Every kind of order that signers may authorise: the permission it takes, and that nothing else of it is signed."""

import json
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from tests.fixtures.authorised import Order, status_and_code
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.people import Person
from tests.fixtures.signers import new_key, new_quorum, new_signer
from tests.routes.orders import message, note, solana_payment

# Of each kind: where it is sent below the vault, its body, another of the same kind, and the permissions that suffice.
type Kind = tuple[str, Callable[[Agent], Any], Callable[[Agent], Any], tuple[str, ...]]
KINDS: dict[str, Kind] = {
    "typed data": ("sign-typed-data", lambda _: note(), lambda _: note("another"), ("sign_typed_data",)),
    "message": ("sign-message", lambda _: message("one"), lambda _: message("two"), ("sign_message",)),
    "message of solana": (
        "sign-message",
        lambda _: message("one", "solana"),
        # The same text for the other wallet.
        lambda _: message("one"),
        ("sign_message",),
    ),
    "solana": (
        "sign-solana",
        lambda agent: solana_payment(agent, 1),
        lambda agent: solana_payment(agent, 2),
        ("solana_transaction", "sign_transaction"),
    ),
}


def prepare(tenant: Tenant, agent: Agent, path: str, body: Any) -> Order:
    order = Order(tenant.id, agent, f"/vault/{agent.id}/{path}")
    order.body = json.dumps(body).encode()
    return order


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_authorised_by_its_own_permission(kind: str, as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    path, body, other, permissions = KINDS[kind]
    for number, permission in enumerate(permissions):
        key = new_key()
        signer = new_signer(as_owner, agent, f"worker-{number}", key, permissions=[permission])["id"]
        order, swapped = prepare(tenant, agent, path, body(agent)), prepare(tenant, agent, path, other(agent))
        shown = order.signer_headers(signer, key)
        swapped.key, swapped.timestamp = order.key, order.timestamp

        assert status_and_code(swapped.send(shown)) == (401, "signature_mismatch")
        answer = order.send(shown)
        assert answer.status_code == 200, answer.text
        found = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")
        assert found["authorization"]["signers"] == [signer]


@pytest.mark.parametrize("kind", KINDS)
def test_another_permission_is_not_enough(kind: str, as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    path, body, _, permissions = KINDS[kind]
    key = new_key()
    lacking = sorted({"sign_message", "transfer", "send_calls", "sign_typed_data"} - set(permissions))
    signer = new_signer(as_owner, agent, "worker", key, permissions=lacking)["id"]
    order = prepare(tenant, agent, path, body(agent))

    assert status_and_code(order.send(order.signer_headers(signer, key))) == (403, "signer_permission")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_replacement_is_authorised_for_its_own_transaction(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    key = new_key()
    signer = new_signer(as_owner, agent, "worker", key)["id"]
    first, second = (agent.sign(value=value).json()["data"]["txId"] for value in (1, 2))
    order = prepare(tenant, agent, f"transactions/{second}/replace", {})
    elsewhere = prepare(tenant, agent, f"transactions/{first}/replace", {})
    elsewhere.key, elsewhere.timestamp = order.key, order.timestamp
    shown = order.signer_headers(signer, key)

    assert status_and_code(elsewhere.send(shown)) == (401, "signature_mismatch")
    answer = order.send(shown)
    assert answer.status_code == 200, answer.text
    replaced = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")
    assert (replaced["replacesTxId"], replaced["authorization"]["signers"]) == (second, [signer])


def test_a_signature_is_of_no_use_to_another_token_of_the_agent(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    key = new_key()
    signer = new_signer(as_owner, agent, "worker", key)["id"]
    order = Order(tenant.id, agent)
    shown = order.signer_headers(signer, key)
    assert order.send(shown).status_code == 200

    # The same principal, so the same key of the request: it is this request again, and gets the same answer.
    token = tenant.ok("POST", f"/agents/{agent.id}/token", {})["token"]
    again = order.send(shown, Authorization=f"Bearer {token}")

    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


def test_a_signer_of_an_agent_made_again_is_unknown(as_owner: Person, tenant: Tenant) -> None:
    key = new_key()
    agent = tenant.agent(agent_id="phoenix")
    signer = new_signer(as_owner, agent, "worker", key)["id"]
    tenant.ok("DELETE", "/agents/phoenix")
    again = tenant.agent(agent_id="phoenix")
    order = Order(tenant.id, again)

    assert status_and_code(order.send(order.signer_headers(signer, key))) == (401, "signer_unknown")


def test_a_signature_that_is_empty_authorises_nothing(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    keys = [new_key(), new_key()]
    signers = [new_signer(as_owner, agent, f"worker-{n}", key)["id"] for n, key in enumerate(keys)]
    quorum = new_quorum(as_owner, agent, signers)["id"]
    order = Order(tenant.id, agent)
    first = order.quorum_headers(quorum, (signers[0], keys[0]), (signers[1], keys[1]))
    entries = json.loads(first["X-Service-Key-Quorum-Signatures"])

    def with_entries(*changed: dict[str, str]) -> dict[str, str]:
        return first | {"X-Service-Key-Quorum-Signatures": json.dumps(changed)}

    empty = [{**entry, "signature": ""} for entry in entries]
    for shown in (with_entries(*empty), with_entries(entries[0], empty[1])):
        assert order.send(shown).status_code in (400, 401)
    assert order.send({"X-Service-Signer-Id": signers[0], "X-Service-Signature": ""}).status_code in (400, 401)
    assert order.send({"X-Service-Signer-Id": signers[0], "X-Service-Signer-Secret": ""}).status_code in (400, 401)
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
    assert order.send(first).status_code == 200


async def test_a_key_of_two_signers_signs_a_request_once(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    key = new_key()
    one, two = (new_signer(as_owner, agent, f"worker-{n}", key)["id"] for n in range(2))
    order = Order(tenant.id, agent)
    shown = order.signer_headers(one, key)
    assert order.send(shown).status_code == 200
    # What kept the first answer is gone, as after a day.
    await owner.execute("DELETE FROM idempotency WHERE tenant_id = $1", tenant.id)

    assert status_and_code(order.send(shown | {"X-Service-Signer-Id": two})) == (401, "signature_replayed")
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1
