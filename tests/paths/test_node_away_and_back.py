"""A node that fails before, while and after an order is signed: the answer, the record, the next try."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from ops import places
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.bad_node import BadNode, running_bad_node
from tests.routes.vault.transfers import fields, transfer, with_signer

WORKING: dict[str, object] = {
    "eth_chainId": "0x7a69",
    "eth_getTransactionCount": "0x0",
    "eth_getBalance": hex(10**18),
    "eth_maxPriorityFeePerGas": "0x3b9aca00",
    "eth_getBlockByNumber": {"baseFeePerGas": "0x3b9aca00"},
    "eth_gasPrice": "0x3b9aca00",
    "eth_estimateGas": "0x5208",
    "eth_getTransactionByHash": None,
}
SECONDS = 60


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """Rows that no other scheduler touches."""
    return database_apart(postgres_home, f"nodes_{worker_id}")


@pytest.fixture(scope="module")
def node() -> Iterator[BadNode]:
    with running_bad_node() as running:
        yield running


@pytest.fixture(scope="module")
def on_bad_node(apart: Database, node: BadNode) -> Iterator[Service]:
    """A deployment whose only node does what a test says."""
    with deploy(
        apart, "signer", "identity", "api", "scheduler", SERVICE_RPC_URL_31337=f"http://{node.address}"
    ) as running:
        yield running


@pytest.fixture
def payer(on_bad_node: Service, node: BadNode) -> Iterator[Agent]:
    node.status, node.results = 200, dict(WORKING)
    with new_tenant(on_bad_node) as tenant:
        agent = tenant.agent()
        agent.tenant = tenant
        yield agent


@pytest.fixture
async def owner_apart(apart: Database) -> Any:
    connection = await asyncpg.connect(apart.owner_url)
    yield connection
    await connection.close()


def record(agent: Agent) -> dict[str, Any]:
    return agent.ok("GET", f"/vault/{agent.id}/history?include=data")[0]


def until_status(agent: Agent, status: str) -> dict[str, Any]:
    """The newest order once it has a status; the requests themselves are the waiting."""
    deadline = time.monotonic() + SECONDS
    while (found := record(agent))["status"] != status:
        assert time.monotonic() < deadline, found
    return found


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (None, "rpc_unavailable"),
        ({"eth_chainId": "0x1"}, "rpc_unavailable"),
        ({"eth_getTransactionCount": "nonsense"}, "rpc_unavailable"),
        ({"eth_getBalance": "0x0"}, "insufficient_funds"),
    ],
)
def test_before_signing_a_broadcasting_order_is_502_and_nothing_is_recorded(
    payer: Agent, node: BadNode, changed: dict[str, object] | None, code: str
) -> None:
    if changed is None:
        node.status = 503
    else:
        node.results = {**WORKING, **changed}

    answer = payer.sign(broadcast=True)

    assert (answer.status_code, answer.json()["data"]["code"]) == (502, code), answer.text
    assert payer.ok("GET", f"/vault/{payer.id}/history") == []


def test_an_order_that_the_node_expects_to_fail_is_502_with_the_reason(payer: Agent, node: BadNode) -> None:
    node.results = {name: result for name, result in WORKING.items() if name != "eth_estimateGas"}

    answer = payer.sign(broadcast=True, data="0xdeadbeef")

    assert (answer.status_code, answer.json()["data"]["code"]) == (502, "estimate_failed")


def test_without_a_node_an_order_is_still_refused_queued_or_signed_unsent(payer: Agent, node: BadNode) -> None:
    node.status = 503
    limits = [rule("spending-limit", maxPerTransaction="10"), rule("auto-approve-threshold", threshold="5")]
    payer.tenant.ok("PUT", f"/agents/{payer.id}/policies", limits)

    assert [payer.sign(value=value, broadcast=True).status_code for value in (11, 6)] == [403, 202]
    assert payer.sign(value=1).status_code == 200
    assert payer.sign(value=2).status_code == 200
    assert [row["nonce"] for row in payer.ok("GET", f"/vault/{payer.id}/history")][:2] == [1, 0]


def test_a_balance_is_null_on_the_dashboard_when_no_node_answers(payer: Agent, node: BadNode) -> None:
    node.status = 503

    assert payer.ok("GET", f"/dashboard/{payer.id}")["balances"] == {"evm": None}
    assert payer.get(f"/agents/{payer.id}/balance").status_code == 502


async def test_signed_but_not_taken_is_502_and_sent_again_when_the_node_is_back(
    payer: Agent, node: BadNode, owner_apart: asyncpg.Connection
) -> None:
    answer = payer.sign(broadcast=True, key="one-payment")

    data = answer.json()["data"]
    assert answer.status_code == 502
    assert {name: data[name] for name in ("txId", "txHash", "status")} == {
        "txId": record(payer)["id"],
        "txHash": record(payer)["txHash"],
        "status": "signed",
    }
    assert record(payer)["signedTransaction"] is None

    node.results["eth_sendRawTransaction"] = data["txHash"]
    await owner_apart.execute("UPDATE transactions SET resend_at = now() WHERE id = $1", data["txId"])

    assert until_status(payer, "broadcast")["txHash"] == data["txHash"]
    again = payer.sign(broadcast=True, key="one-payment")
    assert (again.status_code, again.json()["data"]) == (200, {"txId": data["txId"], "txHash": data["txHash"]})
    assert again.headers["Idempotency-Replayed"] == "true"


def test_a_replay_sends_again_what_was_not_taken(payer: Agent, node: BadNode) -> None:
    first = payer.sign(broadcast=True, key="another-payment")
    node.results["eth_sendRawTransaction"] = first.json()["data"]["txHash"]

    again = payer.sign(broadcast=True, key="another-payment")

    assert (first.status_code, again.status_code) == (502, 200)
    assert again.json()["data"]["txId"] == first.json()["data"]["txId"]
    assert len(payer.ok("GET", f"/vault/{payer.id}/history")) == 1
    assert record(payer)["status"] == "broadcast"


def test_already_known_is_success(payer: Agent, node: BadNode) -> None:
    node.results["eth_getTransactionByHash"] = {"hash": "0x1"}

    assert payer.sign(broadcast=True).status_code == 200
    assert record(payer)["status"] == "broadcast"


def test_a_slot_whose_bytes_went_out_is_taken_whatever_the_node_said(payer: Agent) -> None:
    assert payer.sign(broadcast=True).status_code == 502

    taken = payer.sign(nonce=0)
    following = payer.sign()

    assert (taken.status_code, taken.json()["data"]["code"]) == (409, "nonce_taken")
    assert following.status_code == 200
    assert record(payer)["nonce"] == 1


def test_spend_counts_what_was_signed_and_not_taken(payer: Agent, on_bad_node: Service) -> None:
    payer.tenant.ok("PUT", f"/agents/{payer.id}/policies", [rule("spending-limit", maxPerDay="10")])

    assert payer.sign(ADDRESS, 7, broadcast=True).status_code == 502
    assert payer.sign(ADDRESS, 4, broadcast=True).status_code == 403


def test_an_approved_order_that_is_not_taken_is_502_and_approved(payer: Agent, node: BadNode) -> None:
    tenant: Tenant = payer.tenant
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [rule("auto-approve-threshold", threshold="0")])
    approval = payer.sign(broadcast=True).json()["data"]["approvalId"]

    answer = tenant.post(f"/approvals/{approval}/approve", json={})

    assert (answer.status_code, answer.json()["data"]["status"]) == (502, "signed")
    assert tenant.ok("GET", "/approvals?status=approved")[0]["txStatus"] == "signed"


def test_an_approval_that_cannot_be_prepared_is_502_and_stays_pending(payer: Agent, node: BadNode) -> None:
    tenant: Tenant = payer.tenant
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [rule("auto-approve-threshold", threshold="0")])
    approval = payer.sign(broadcast=True).json()["data"]["approvalId"]
    node.status = 503

    answer = tenant.post(f"/approvals/{approval}/approve", json={})

    assert (answer.status_code, answer.json()["data"]["code"]) == (502, "rpc_unavailable")
    assert tenant.ok("GET", "/approvals")[0]["id"] == approval


def test_a_read_does_not_wait_for_a_silent_node(payer: Agent, node: BadNode) -> None:
    node.silent.clear()
    try:
        began = time.monotonic()
        page = payer.ok("GET", f"/dashboard/{payer.id}")
        held = payer.ok("GET", f"/agents/{payer.id}/tokens")
        account = payer.ok("GET", f"/agents/{payer.id}/account")
        refused = payer.get(f"/agents/{payer.id}/balance")
        took = time.monotonic() - began
    finally:
        node.silent.set()

    # One of them waits, a second and a half; a preparation would wait ten.
    assert took < 6
    assert (page["balances"], page["note"]) == ({"evm": None}, "The node at 127.0.0.1 did not answer in time.")
    lately = "The node at 127.0.0.1 did not answer lately and is asked again within 10 s."
    assert (held["native"], held["note"]) == (None, lately)
    assert (account["portfolio"]["native"], account["portfolio"]["note"]) == (None, lately)
    assert (refused.status_code, refused.json()["error"]) == (502, lately)
    # A preparation asks all the same, and with its answer the silence is over.
    assert payer.sign(broadcast=True).status_code in (200, 502)
    assert payer.ok("GET", f"/agents/{payer.id}/balance")["balances"]["native"] == str(10**18)
    assert "note" not in payer.ok("GET", f"/dashboard/{payer.id}")


@pytest.fixture
def owner_of(on_bad_node: Service, payer: Agent) -> Iterator[Person]:
    with closing(member(on_bad_node, payer.tenant, "owner", mfa=True)) as somebody:
        yield somebody


def test_a_transfer_that_is_not_taken_is_502_and_found_by_its_reference(
    payer: Agent, owner_of: Person, node: BadNode
) -> None:
    with_signer(owner_of, payer)

    first = transfer(payer, broadcast=True, referenceId="away")
    node.results["eth_sendRawTransaction"] = first.json()["data"]["txHash"]
    again = transfer(payer, broadcast=True, referenceId="away")

    data = first.json()["data"]
    assert (first.status_code, data["actionId"], data["status"]) == (502, data["txId"], "signed")
    assert (again.status_code, again.json()["data"]["status"]) == (200, "broadcast")
    assert again.json()["data"]["actionId"] == data["actionId"]


def test_a_transfer_that_was_never_signed_has_no_action(payer: Agent, owner_of: Person, node: BadNode) -> None:
    with_signer(owner_of, payer)
    node.status = 503

    answer = transfer(payer, broadcast=True, referenceId="away")
    node.status = 200
    node.results["eth_sendRawTransaction"] = "0x1"
    then = transfer(payer, broadcast=True, referenceId="away")

    assert (answer.status_code, "actionId" in answer.json()["data"]) == (502, False)
    assert then.status_code == 200


def test_a_quote_needs_no_node_and_believes_none(payer: Agent, owner_of: Person, node: BadNode) -> None:
    body = fields(broadcast=True, referenceId="asked")
    path = f"/vault/{payer.id}/actions/transfer/quote"
    # A hundred thousand gwei, which no chain of this deployment may cost.
    node.results |= {"eth_maxPriorityFeePerGas": hex(10**14), "eth_getBalance": hex(10**24)}
    dear = owner_of.ok("POST", path, body)
    node.status = 503
    away = owner_of.ok("POST", path, body)

    assert int(dear["fee"]["max"]) <= 10**17
    assert (dear["needed"], away["needed"], away["decision"]) == ([], ["rpc"], "sign")
