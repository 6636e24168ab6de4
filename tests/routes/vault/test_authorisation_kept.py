"""An order's authorisation later on: when a person approves, in receipts, and behind the service's back."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.authorised import Order, status_and_code
from tests.fixtures.callers import OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.fixtures.signers import new_key, new_quorum, new_signer, path_of


class Signing:
    """A P-256 signer of an agent, with its key."""

    def __init__(self, admin: Person, agent: Agent, subject: str = "worker-1", **fields: Any) -> None:
        self.key = new_key()
        self.id = new_signer(admin, agent, subject, self.key, **fields)["id"]


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose orders wait for a person."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def queue_order(tenant: Tenant, agent: Agent, signer: Signing) -> str:
    """The approval of an order that a signer authorised."""
    order = Order(tenant.id, agent)
    answer = order.send(order.signer_headers(signer.id, signer.key))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


def approve(tenant: Tenant, approval: str) -> tuple[int, str | None]:
    return status_and_code(tenant.post(f"/approvals/{approval}/approve", json={}))


def test_an_authorised_order_is_approved_and_its_receipt_names_the_signer(
    as_owner: Person, tenant: Tenant, cautious: Agent
) -> None:
    signer = Signing(as_owner, cautious)
    approval = queue_order(tenant, cautious, signer)

    assert approve(tenant, approval)[0] == 200
    tx_id = tenant.ok("GET", f"/vault/{cautious.id}/history")[0]["id"]
    receipt = tenant.ok("GET", f"/vault/{cautious.id}/transactions/{tx_id}/receipt")["receipt"]
    assert receipt["authorization"] == {"quorum": None, "signers": [signer.id], "policyIds": []}


@pytest.mark.parametrize("change", [{"status": "paused"}, {"permissions": ["transfer"]}, None], ids=str)
def test_an_order_whose_signer_may_no_longer_is_not_approved(
    as_owner: Person, tenant: Tenant, cautious: Agent, change: dict[str, Any] | None
) -> None:
    signer = Signing(as_owner, cautious)
    first, second = (queue_order(tenant, cautious, signer) for _ in range(2))
    where = path_of(cautious, "signers", signer.id)
    as_owner.ok("PATCH", where, change) if change else as_owner.ok("DELETE", where)

    assert approve(tenant, first) == (409, "authorization_stale")
    tenant.ok("POST", f"/approvals/{first}/deny", {"reason": "gone"})
    if change and "status" in change:
        # Nothing was written, so what waits is approved once the signer may again.
        as_owner.ok("PATCH", where, {"status": "active"})
        assert approve(tenant, second)[0] == 200


def test_a_quorum_is_met_by_todays_threshold(as_owner: Person, tenant: Tenant, cautious: Agent) -> None:
    one, two = Signing(as_owner, cautious, "a"), Signing(as_owner, cautious, "b")
    quorum = new_quorum(as_owner, cautious, [one.id, two.id], 1)["id"]
    order = Order(tenant.id, cautious)
    approval = order.send(order.quorum_headers(quorum, (one.id, one.key))).json()["data"]["approvalId"]

    as_owner.ok("PATCH", path_of(cautious, "key-quorums", quorum), {"threshold": 2})
    assert approve(tenant, approval) == (409, "authorization_stale")
    as_owner.ok("PATCH", path_of(cautious, "key-quorums", quorum), {"threshold": 1})
    assert approve(tenant, approval)[0] == 200


def test_a_rule_that_the_signer_names_binds_the_approval_too(as_owner: Person, tenant: Tenant, cautious: Agent) -> None:
    signer = Signing(as_owner, cautious)
    approval = queue_order(tenant, cautious, signer)
    rules = as_owner.ok(
        "PUT",
        f"/agents/{cautious.id}/policies",
        [rule("approved-addresses", enabled=False, addresses=[OTHER_ADDRESS], mode="whitelist")],
    )

    as_owner.ok("PATCH", path_of(cautious, "signers", signer.id), {"policyIds": [rules[0]["id"]]})
    assert approve(tenant, approval)[0] == 403
    as_owner.ok("PATCH", path_of(cautious, "signers", signer.id), {"policyIds": []})
    assert approve(tenant, approval)[0] == 200


@pytest.mark.parametrize("text", [None, '{"quorum":null,"signers":[],"policyIds":[]}'], ids=["dropped", "changed"])
async def test_an_authorisation_that_changed_in_the_database_is_refused(
    as_owner: Person, tenant: Tenant, cautious: Agent, owner: asyncpg.Connection, text: str | None
) -> None:
    signer = Signing(as_owner, cautious)
    first, second = (queue_order(tenant, cautious, signer) for _ in range(2))
    assert approve(tenant, first)[0] == 200
    set_text = "UPDATE transactions SET authorization_text = $2 WHERE tenant_id = $1"
    kept = await owner.fetchval("SELECT authorization_text FROM transactions WHERE tenant_id = $1 LIMIT 1", tenant.id)

    await owner.execute(set_text, tenant.id, text)
    assert approve(tenant, second)[0] == 503
    done = next(one for one in tenant.ok("GET", f"/vault/{cautious.id}/history") if one["status"] != "pending_approval")
    receipt = f"/vault/{cautious.id}/transactions/{done['id']}/receipt"
    assert tenant.get(receipt).status_code == 503
    await owner.execute(set_text, tenant.id, kept)
    assert tenant.get(receipt).status_code == 200
    assert approve(tenant, second)[0] == 200


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE signers SET status = 'active' WHERE agent_id = $1 AND subject_id = 'paused'",
        'UPDATE signers SET permissions = \'["send_calls","sign_transaction"]\' WHERE agent_id = $1',
        "UPDATE signers SET public_key = set_byte(public_key, 90, 1) WHERE agent_id = $1",
        "DELETE FROM signers WHERE agent_id = $1 AND subject_id = 'paused'",
        "DELETE FROM authority_heads WHERE agent_id = $1",
        "UPDATE agents SET authority_version = 0 WHERE id = $1",
    ],
    ids=["status", "permissions", "key", "row", "head", "version"],
)
async def test_signers_that_changed_in_the_database_authorise_nothing(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection, change: str
) -> None:
    signer = Signing(as_owner, agent)
    paused = Signing(as_owner, agent, "paused")
    as_owner.ok("PATCH", path_of(agent, "signers", paused.id), {"status": "paused"})
    order = Order(tenant.id, agent)

    await owner.execute(change, agent.id)
    assert status_and_code(order.send(order.signer_headers(signer.id, signer.key))) == (503, "authority_tampered")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
    # An order without an authorisation asks for none of it.
    assert agent.sign().status_code == 200


def test_no_order_is_committed_after_its_signer_was_revoked(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    signer = Signing(as_owner, agent)
    orders = [Order(tenant.id, agent) for _ in range(64)]
    shown = [order.signer_headers(signer.id, signer.key) for order in orders]

    def send(at: int) -> httpx.Response:
        return orders[at].send(shown[at])

    with ThreadPoolExecutor(16) as many:
        under_way = [many.submit(send, at) for at in range(32)]
        as_owner.ok("DELETE", path_of(agent, "signers", signer.id))
        signed = len(
            [one for one in agent.ok("GET", f"/vault/{agent.id}/history?limit=200") if one["status"] == "signed"]
        )
        later = [many.submit(send, at) for at in range(32, 64)]
        answers = [status_and_code(one.result()) for one in under_way]
        after = [status_and_code(one.result()) for one in later]

    assert after == [(401, "signer_unknown")] * 32
    assert {answer for answer in answers if answer[0] != 200} <= {(401, "signer_unknown")}
    assert len([one for one in answers if one[0] == 200]) == signed


def test_an_api_that_lies_about_the_order_is_refused(
    service: Service, as_owner: Person, tenant: Tenant, agent: Agent
) -> None:
    signer = Signing(as_owner, agent)
    order = Order(tenant.id, agent)
    proof = {"kind": "agent", "value": agent.headers["Authorization"].removeprefix("Bearer ")}
    signature = order.signer_headers(signer.id, signer.key)["X-Service-Signature"]
    honest = {
        "method": "POST", "path": order.path, "timestamp": order.timestamp, "idempotency_key": order.key,
        "body": order.body, "shown": [{"signer": signer.id, "signature": signature}],
    }  # fmt: skip

    def ask(tx: int, authorization: dict[str, Any], **changed: Any) -> str:
        fields = {**json.loads(order.body), **changed}
        body = {"agent": agent.id, "tx_id": f"00000000-0000-4000-8000-{tx:012d}"}
        question = {"question": {"kind": "evm", "request": fields}}
        with greet(service) as wire:
            outcome = wire.ask("SignOrder", body | question, proof, authorization=authorization)
        return str(outcome.get("code") or outcome["type"])

    assert ask(1, honest, value="2") == "signature_mismatch"
    assert ask(2, honest, to=OTHER_ADDRESS) == "signature_mismatch"
    assert ask(3, honest | {"body": order.body.replace(b'"1"', b'"2"')}, value="2") == "signature_mismatch"
    twice = order.body[:-1] + b', "value": "1"}'
    order.body = twice
    doubled = [{"signer": signer.id, "signature": order.signer_headers(signer.id, signer.key)["X-Service-Signature"]}]
    assert ask(4, honest | {"body": twice, "shown": doubled}) == "signature_mismatch"
    for part in ({"method": "PUT"}, {"path": f"/vault/{agent.id}/simulate"}, {"path": "/vault/other/sign"}):
        assert ask(5, honest | part) == "signature_mismatch"
    assert ask(6, honest | {"quorum": signer.id, "shown": [{"signer": signer.id, "secret": "x"}]}) == (
        "ambiguous_credentials"
    )
    # Named beside nothing that proves it.
    assert ask(6, honest | {"shown": [{"signer": signer.id}]}) == "ambiguous_credentials"
    assert ask(6, honest | {"shown": [{"signer": signer.id}], "quorum": signer.id}) == "ambiguous_credentials"
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
    assert ask(7, honest) == "Signed"
    assert ask(8, honest) == "signature_replayed"
