"""A stuck transaction again: the same payment and nonce, higher fees, judged again. Promise P2."""

import concurrent.futures
from collections.abc import Iterator
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.evm_node import EvmNode
from tests.routes.orders import mail, solana_payment

ABSENT = "00000000-0000-4000-8000-000000000000"
GWEI = 10**9
LIMIT = rule("spending-limit", maxPerDay="100")


@pytest.fixture
def payer(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with funds and a limit, so that its spend can be read."""
    agent = tenant.agent(LIMIT)
    evm_node.fund(agent.evm_address)
    return agent


@pytest.fixture
def holding_node(evm_node: EvmNode) -> Iterator[EvmNode]:
    """Nothing is mined, as when fees are too low; what waits is mined afterwards."""
    with evm_node.holding():
        yield evm_node
    evm_node.mine()


@pytest.fixture
def stuck_payment(payer: Agent, holding_node: EvmNode) -> dict[str, Any]:
    """A payment of 6 that waits."""
    return record(payer, payer.sign(value=6, broadcast=True, referenceId="bill-7").json()["data"]["txId"])


def replace(agent: Agent, tx_id: str, *, key: str | None = None, **fees: str) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return agent.post(f"/vault/{agent.id}/transactions/{tx_id}/replace", json=fees, headers=headers)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def record(agent: Agent, tx_id: str) -> dict[str, Any]:
    found: dict[str, Any] = agent.ok("GET", f"/vault/{agent.id}/transactions/{tx_id}")
    return found


def spend_of(agent: Agent) -> str:
    return agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"]


def fees_of(node: EvmNode, tx: dict[str, Any]) -> tuple[int, int]:
    found = node.rpc("eth_getTransactionByHash", tx["txHash"])
    return int(found["maxFeePerGas"], 16), int(found["maxPriorityFeePerGas"], 16)


def test_the_same_payment_with_higher_fees_takes_the_place_of_the_first(
    payer: Agent, stuck_payment: dict[str, Any], holding_node: EvmNode
) -> None:
    before = fees_of(holding_node, stuck_payment)

    answer = replace(payer, stuck_payment["id"])

    better = record(payer, answer.json()["data"]["txId"])
    assert answer.json()["data"] == {"txId": better["id"], "txHash": better["txHash"]}
    same = ("toAddress", "value", "data", "nonce", "chainId", "referenceId", "broadcast", "status")
    assert {name: better[name] for name in same} == {name: stuck_payment[name] for name in same}
    assert (better["replacesTxId"], stuck_payment["replacesTxId"]) == (stuck_payment["id"], None)
    after = fees_of(holding_node, better)
    assert [new * 8 >= old * 9 for old, new in zip(before, after, strict=True)] == [True, True]
    assert holding_node.waits(better["txHash"])
    assert not holding_node.waits(stuck_payment["txHash"])


def test_a_nonce_counts_once_in_spend_and_each_try_once_in_the_rate(
    tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any]
) -> None:
    assert spend_of(payer) == "6"

    better = replace(payer, stuck_payment["id"]).json()["data"]["txId"]
    assert spend_of(payer) == "6"

    tenant.ok("PUT", f"/agents/{payer.id}/policies", [LIMIT, rule("rate-limit", maxTxPerHour=3)])
    again = replace(payer, better)
    assert again.status_code == 200
    assert replace(payer, again.json()["data"]["txId"]).status_code == 429
    assert spend_of(payer) == "6"


def test_a_callers_own_fees_are_paid(payer: Agent, stuck_payment: dict[str, Any], holding_node: EvmNode) -> None:
    answer = replace(payer, stuck_payment["id"], maxFeePerGas=str(77 * GWEI), maxPriorityFeePerGas=str(5 * GWEI))

    assert fees_of(holding_node, answer.json()["data"]) == (77 * GWEI, 5 * GWEI)


@pytest.mark.parametrize("name", ["maxFeePerGas", "maxPriorityFeePerGas"])
def test_less_than_a_tenth_more_is_400(
    payer: Agent, stuck_payment: dict[str, Any], holding_node: EvmNode, name: str
) -> None:
    before = dict(zip(("maxFeePerGas", "maxPriorityFeePerGas"), fees_of(holding_node, stuck_payment), strict=True))

    least = -(-before[name] * 11 // 10)
    assert refusal(replace(payer, stuck_payment["id"], **{name: str(least - 1)})) == (400, "fee_too_low")
    assert len(payer.ok("GET", f"/vault/{payer.id}/history")) == 1
    assert replace(payer, stuck_payment["id"], **{name: str(least)}).status_code == 200


@pytest.mark.parametrize("name", ["maxFeePerGas", "maxPriorityFeePerGas"])
def test_a_fee_above_the_cap_is_400(payer: Agent, stuck_payment: dict[str, Any], name: str) -> None:
    assert refusal(replace(payer, stuck_payment["id"], **{name: str(501 * GWEI)})) == (400, "fee_above_cap")
    assert refusal(replace(payer, stuck_payment["id"], **{name: "9" * 78})) == (400, "fee_above_cap")


def test_a_fee_bump_above_the_cap_is_400(payer: Agent, holding_node: EvmNode) -> None:
    top = payer.sign(broadcast=True, maxFeePerGas=str(480 * GWEI)).json()["data"]["txId"]

    assert refusal(replace(payer, top)) == (400, "fee_above_cap")


def test_only_the_newest_for_a_nonce_is_replaced(payer: Agent, stuck_payment: dict[str, Any]) -> None:
    better = replace(payer, stuck_payment["id"]).json()["data"]["txId"]

    answer = replace(payer, stuck_payment["id"])

    assert refusal(answer) == (409, "already_replaced")
    assert better in answer.json()["error"]
    assert replace(payer, better).status_code == 200


def test_of_many_at_once_one_replaces(payer: Agent, stuck_payment: dict[str, Any]) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda _: replace(payer, stuck_payment["id"]), range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    signed = payer.ok("GET", f"/vault/{payer.id}/history")
    assert [(one["nonce"], one["replacesTxId"]) for one in signed] == [(0, stuck_payment["id"]), (0, None)]


def test_the_same_key_again_gives_the_same_answer(payer: Agent, stuck_payment: dict[str, Any]) -> None:
    first = replace(payer, stuck_payment["id"], key="replace-it")
    second = replace(payer, stuck_payment["id"], key="replace-it")

    assert (second.status_code, second.json()) == (200, first.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(payer.ok("GET", f"/vault/{payer.id}/history")) == 2
    assert refusal(replace(payer, stuck_payment["id"], key="replace-it", maxFeePerGas=str(99 * GWEI))) == (
        409,
        "idempotency_mismatch",
    )


def test_a_revoked_token_gets_no_earlier_answer(
    service: Service, tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any]
) -> None:
    token = payer.headers["Authorization"].split()[1]
    better = replace(payer, stuck_payment["id"], key="replace-it").json()["data"]["txId"]
    body = {"agent": payer.id, "tx_id": better, "replaces": stuck_payment["id"]}
    with greet(service) as wire:
        known = wire.ask("ReplaceEvm", body, {"kind": "agent", "value": token})
        tenant.ok("DELETE", f"/agents/{payer.id}/tokens")
        late = wire.ask("ReplaceEvm", body, {"kind": "agent", "value": token})

    again = replace(payer, stuck_payment["id"], key="replace-it")

    assert (known["type"], known["tx_id"]) == ("Signed", better)
    assert late["code"] == "token_revoked"
    assert refusal(again) == (401, "token_revoked")


def test_an_order_never_broadcast_is_replaced_without_broadcast(payer: Agent) -> None:
    kept = payer.sign(value=6).json()["data"]

    answer = replace(payer, kept["txId"])

    better = answer.json()["data"]
    assert answer.status_code == 200
    assert better["signedTransaction"] != kept["signedTransaction"]
    assert record(payer, better["txId"])["status"] == "signed"
    assert spend_of(payer) == "6"
    assert payer.sign(nonce=0).status_code == 200, "its nonce is as open as before"


def test_todays_rules_judge_it(tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any]) -> None:
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [rule("spending-limit", maxPerTransaction="5")])

    answer = replace(payer, stuck_payment["id"])

    assert answer.status_code == 403
    refused = record(payer, answer.json()["data"]["txId"])
    assert (refused["status"], refused["nonce"], refused["replacesTxId"]) == ("rejected", None, None)
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [LIMIT])
    assert replace(payer, stuck_payment["id"]).status_code == 200


def test_above_the_threshold_it_waits_for_a_person_and_is_a_replacement_still(
    tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any], holding_node: EvmNode
) -> None:
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [LIMIT, rule("auto-approve-threshold", threshold="5")])
    queued = [replace(payer, stuck_payment["id"]) for _ in range(2)]
    assert [answer.status_code for answer in queued] == [202, 202]
    first, second = (answer.json()["data"] for answer in queued)
    digest = next(one["digest"] for one in tenant.ok("GET", "/approvals") if one["id"] == first["approvalId"])

    done = tenant.ok("POST", f"/approvals/{first['approvalId']}/approve", {"digest": digest})

    better = record(payer, first["txId"])
    assert (better["status"], better["nonce"], better["replacesTxId"]) == ("broadcast", 0, stuck_payment["id"])
    assert holding_node.waits(done["txHash"])
    assert fees_of(holding_node, better)[0] > 0
    assert spend_of(payer) == "6"
    late = tenant.post(f"/approvals/{second['approvalId']}/approve", json={})
    assert refusal(late) == (409, "already_replaced")


def test_a_transaction_that_cannot_be_replaced_is_409(tenant: Tenant, payer: Agent) -> None:
    typed = payer.ok("POST", f"/vault/{payer.id}/sign-typed-data", mail())["txId"]
    solana = payer.ok("POST", f"/vault/{payer.id}/sign-solana", solana_payment(payer, 1))["txId"]
    rejected = payer.sign(value=101).json()["data"]["txId"]
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [rule("auto-approve-threshold", threshold="0")])
    waiting = payer.sign().json()["data"]["txId"]

    found = [refusal(replace(payer, tx)) for tx in (typed, solana, rejected, waiting)]

    assert found == [(409, "not_evm"), (409, "not_evm"), (409, "not_signed"), (409, "not_signed")]


@pytest.mark.parametrize("status", ["confirmed", "failed"])
async def test_a_final_transaction_is_409(
    payer: Agent, stuck_payment: dict[str, Any], owner: asyncpg.Connection, status: str
) -> None:
    await owner.execute(
        "UPDATE transactions SET status = $2, look_at = NULL WHERE id = $1", stuck_payment["id"], status
    )

    assert refusal(replace(payer, stuck_payment["id"])) == (409, "transaction_final")


async def test_a_nonce_that_was_seen_on_chain_is_409(
    payer: Agent, stuck_payment: dict[str, Any], owner: asyncpg.Connection
) -> None:
    await owner.execute("UPDATE nonces SET state = 'seen' WHERE tx_id = $1", stuck_payment["id"])

    assert refusal(replace(payer, stuck_payment["id"])) == (409, "transaction_final")


def test_another_caller_cannot_replace_a_transaction(
    tenant: Tenant, other_tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any]
) -> None:
    neighbour, stranger = tenant.agent(), other_tenant.agent()

    assert replace(payer, ABSENT).status_code == 404
    assert replace(neighbour, stuck_payment["id"]).status_code == 404
    assert replace(stranger, stuck_payment["id"]).status_code == 404
    path = f"/vault/{payer.id}/transactions/{stuck_payment['id']}/replace"
    assert neighbour.post(path, json={}).status_code == 403
    assert stranger.post(path, json={}).status_code in (403, 404)
    assert tenant.post(path, json={}).status_code == 403


def test_a_frozen_agent_replaces_nothing(tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any]) -> None:
    tenant.ok("POST", f"/agents/{payer.id}/freeze", {"reason": "tried"})

    assert replace(payer, stuck_payment["id"]).status_code == 423


async def test_bytes_that_somebody_swapped_are_not_replaced(
    tenant: Tenant, payer: Agent, stuck_payment: dict[str, Any], owner: asyncpg.Connection
) -> None:
    other = tenant.agent()
    theirs = bytes.fromhex(other.sign(ADDRESS, 99).json()["data"]["signedTransaction"][2:])
    await owner.execute("UPDATE transactions SET signed_bytes = $2 WHERE id = $1", stuck_payment["id"], theirs)

    assert refusal(replace(payer, stuck_payment["id"])) == (503, "sealed_value_tampered")


@pytest.mark.parametrize(
    "body",
    [{"maxFeePerGas": 5}, {"maxFeePerGas": "-1"}, {"maxFeePerGas": "1.5"}, {"gasLimit": "1"}, {"to": ADDRESS}, []],
)
def test_a_malformed_body_is_400(payer: Agent, body: Any) -> None:
    assert payer.post(f"/vault/{payer.id}/transactions/{ABSENT}/replace", json=body).status_code == 400
