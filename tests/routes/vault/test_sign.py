"""EVM orders: which are understood, which are refused, and what is recorded."""

import asyncio
from typing import Any

import httpx
import pytest
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, AsyncClient, Tenant, rule
from tests.outside.evm_node import EvmNode

CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
TRANSFER = "0xa9059cbb" + "00" * 12 + "22" * 20 + f"{5:064x}"


def order(agent: Agent, **changed: Any) -> httpx.Response:
    """Send an order with any field changed, or left out when it is `...`."""
    given = {"to": ADDRESS, "value": "1", "broadcast": False, **changed}
    return agent.post(f"/vault/{agent.id}/sign", json={name: one for name, one in given.items() if one is not ...})


def fields_signed(answer: httpx.Response) -> dict[str, Any]:
    """The fields of the transaction that was signed."""
    assert answer.status_code == 200, answer.text
    raw = HexBytes(answer.json()["data"]["signedTransaction"])
    return {**TypedTransaction.from_bytes(raw).transaction.dictionary, "from": Account.recover_transaction(raw)}


def test_the_signed_transaction_equals_the_order(agent: Agent, evm_node: EvmNode) -> None:
    answer = order(agent, to=CHECKSUMMED, value="12345678901234567890", data="0xdeadbeef")

    found = fields_signed(answer)
    assert set(answer.json()["data"]) == {"txId", "txHash", "signedTransaction"}
    assert found["from"] == agent.evm_address
    assert (found["value"], bytes(found["data"]).hex(), bytes(found["to"]).hex()) == (
        12345678901234567890,
        "deadbeef",
        CHECKSUMMED[2:].lower(),
    )
    assert (found["chainId"], found["nonce"]) == (31337, 0)


def test_a_broadcast_answer_has_no_bytes(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)

    assert set(order(agent, broadcast=...).json()["data"]) == {"txId", "txHash"}


@pytest.mark.parametrize(
    "value",
    [
        "-1",
        "1.5",
        "+1",
        "0x1",
        "01",
        "00",
        "1e3",
        "",
        " 1",
        "1 ",
        "1\n",
        "\u0661",
        "1_000",
        "NaN",
        str(2**256),
        "9" * 79,
        1,
        1.0,
        None,
        True,
        ["1"],
        {},
    ],
    ids=repr,
)
def test_a_value_in_any_other_form_is_400(agent: Agent, value: Any) -> None:
    answer = order(agent, value=value)

    assert answer.status_code == 400, answer.text
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


@pytest.mark.parametrize("value", ["0", str(2**256 - 1)])
def test_the_smallest_and_the_largest_value_are_signed(agent: Agent, value: str) -> None:
    assert fields_signed(order(agent, value=value))["value"] == int(value)


@pytest.mark.parametrize(
    "to",
    [
        ...,
        None,
        "",
        "0x",
        "0x" + "11" * 19,
        "0x" + "11" * 21,
        "11" * 20,
        "0X" + "11" * 20,
        "0x" + "g1" * 20,
        CHECKSUMMED.replace("A", "a", 1),
        ADDRESS + "\n",
        "vitalik.eth",
        5,
    ],
    ids=repr,
)
def test_a_destination_that_is_no_address_is_400(agent: Agent, to: Any) -> None:
    answer = order(agent, to=to)

    assert answer.status_code == 400, answer.text


def test_nothing_is_created_by_leaving_the_destination_out_or_zero(agent: Agent) -> None:
    """Without `to` a transaction would create a contract; the zero address only burns, and says so."""
    assert order(agent, to=..., data="0x6000").status_code == 400
    assert bytes(fields_signed(order(agent, to="0x" + "00" * 20, data="0x6000"))["to"]) == bytes(20)


@pytest.mark.parametrize("to", [CHECKSUMMED, CHECKSUMMED.lower(), "0x" + CHECKSUMMED[2:].upper()])
def test_an_address_may_be_checksummed_or_in_one_case(agent: Agent, to: str) -> None:
    answer = order(agent, to=to)

    assert answer.status_code == 200
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")
    assert found["toAddress"] == CHECKSUMMED


@pytest.mark.parametrize(
    "data", ["0x0", "0xzz", "abc", "0x 00", "0x00\n", 5, [], "0X00", "ab" * 131_073], ids=lambda data: repr(data)[:20]
)
def test_data_that_is_no_whole_hex_is_400(agent: Agent, data: Any) -> None:
    assert order(agent, data=data).status_code == 400


@pytest.mark.parametrize(
    ("data", "expected"), [("0x", ""), ("", ""), (None, ""), ("DEADBEEF", "deadbeef"), ("0xDeadBeef", "deadbeef")]
)
def test_data_may_come_with_or_without_its_prefix(agent: Agent, data: Any, expected: str) -> None:
    assert bytes(fields_signed(order(agent, data=data))["data"]).hex() == expected


@pytest.mark.parametrize("chain", [999, 101, 102, 0, -1, "1", "31337", 1.5, True])
def test_a_chain_that_is_not_a_known_evm_chain_is_400(agent: Agent, chain: Any) -> None:
    assert order(agent, chainId=chain).status_code == 400


def test_a_chain_may_be_named(agent: Agent) -> None:
    assert fields_signed(order(agent, chainId=8453))["chainId"] == 8453


@pytest.mark.parametrize("broadcast", ["false", 0, None, "no"])
def test_broadcast_is_a_boolean(agent: Agent, broadcast: Any) -> None:
    assert order(agent, broadcast=broadcast).status_code == 400


@pytest.mark.parametrize(
    "fees",
    [
        {"maxFeePerGas": str(501 * 10**9)},
        {"maxPriorityFeePerGas": str(51 * 10**9)},
        {"gasLimit": str(10**6), "maxFeePerGas": str(400 * 10**9)},
        {"gasLimit": str(10**12)},
        {"gasLimit": str(2**63)},
    ],
    ids=str,
)
def test_a_fee_above_the_cap_is_400_without_a_transaction(agent: Agent, fees: dict[str, str]) -> None:
    answer = order(agent, **fees)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "fee_above_cap"), answer.text
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [("input", TRANSFER, '"data"'), ("gasPrice", "5", '"maxFeePerGas"'), ("gas", "50000", '"gasLimit"')],
)
def test_a_field_of_another_library_is_named_as_it_is_called_here(
    agent: Agent, name: str, value: str, meant: str
) -> None:
    answer = order(agent, **{name: value})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [name])
    assert answer.json()["error"].startswith(f"{name} is no field here; call it {meant}")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_tip_above_the_fee_is_400_without_a_transaction(agent: Agent) -> None:
    answer = order(agent, maxFeePerGas="1", maxPriorityFeePerGas="2")

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_transaction"), answer.text
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
    assert fields_signed(order(agent, maxFeePerGas="2", maxPriorityFeePerGas="2"))["maxPriorityFeePerGas"] == 2


def test_fees_that_are_chosen_are_ones_that_the_nodes_of_the_chain_take(agent: Agent) -> None:
    found = fields_signed(order(agent, chainId=137))

    assert found["maxFeePerGas"] >= found["maxPriorityFeePerGas"] >= 25 * 10**9


@pytest.mark.parametrize(
    "fees",
    [
        {"gasLimit": "20999"},
        {"gasLimit": "0"},
        {"gasLimit": 21000},
        {"maxFeePerGas": "1.5"},
        {"maxFeePerGas": -1},
        {"nonce": "0"},
        {"nonce": -1},
        {"referenceId": ""},
        {"referenceId": "a b"},
        {"referenceId": "x" * 129},
    ],
    ids=str,
)
def test_a_malformed_extra_is_400(agent: Agent, fees: dict[str, Any]) -> None:
    assert order(agent, **fees).status_code == 400


def test_a_callers_own_fees_are_signed(agent: Agent) -> None:
    found = fields_signed(order(agent, gasLimit="50000", maxFeePerGas="3000000000", maxPriorityFeePerGas="2000000000"))

    assert (found["gas"], found["maxFeePerGas"], found["maxPriorityFeePerGas"]) == (50_000, 3 * 10**9, 2 * 10**9)


def test_a_refused_order_is_recorded_with_its_results(tenant: Tenant) -> None:
    agent = tenant.agent(
        rule("approved-addresses", addresses=[OTHER_ADDRESS]), rule("auto-approve-threshold", threshold="0")
    )

    answer = order(agent, value="5")

    body = answer.json()
    assert (answer.status_code, body["ok"]) == (403, False)
    assert [(one["type"], one["passed"]) for one in body["data"]["results"]] == [
        ("approved-addresses", False),
        ("auto-approve-threshold", False),
    ]
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{body['data']['txId']}")
    assert (found["status"], found["txHash"], found["policyResults"]) == ("rejected", None, body["data"]["results"])


def test_a_queued_order_says_so(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="4"))

    at, above = order(agent, value="4"), order(agent, value="5")

    assert at.status_code == 200
    body = above.json()
    assert (above.status_code, body["ok"], body["data"]["status"]) == (202, False, "pending_approval")
    assert body["error"]
    assert set(body["data"]) == {"txId", "approvalId", "results", "status", "code", "releaseAt"}
    assert body["data"]["code"] == "approval_required"


def test_a_refusal_is_told_in_coins(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction=str(5 * 10**17)))

    refused = order(agent, value=str(6 * 10**17)).json()

    assert refused["error"] == "Refused by policy: 0.6 ETH exceeds the limit of 0.5 ETH per transaction"


def test_a_refusal_names_the_rule_that_refuses_and_not_one_that_would_ask(tenant: Tenant) -> None:
    agent = tenant.agent(
        rule("auto-approve-threshold", threshold="1"), rule("spending-limit", maxPerTransaction=str(5 * 10**17))
    )

    refused = order(agent, value=str(6 * 10**17)).json()

    assert [one["passed"] for one in refused["data"]["results"]] == [False, False]
    assert refused["error"] == "Refused by policy: 0.6 ETH exceeds the limit of 0.5 ETH per transaction"


def test_an_amount_of_another_kind_says_what_to_send(agent: Agent) -> None:
    refused = agent.post(f"/vault/{agent.id}/sign", json={"to": ADDRESS, "value": 5, "chain_id": 1})

    assert refused.status_code == 400
    assert refused.json()["error"].startswith("value must be a whole number")
    assert refused.json()["data"] == {"code": "bad_body", "fields": ["value"]}


def test_too_many_orders_are_429_with_the_body_of_a_403(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=2), rule("spending-limit", maxPerTransaction="100"))
    assert [order(agent).status_code for _ in range(2)] == [200, 200]

    limited, refused = order(agent), order(agent, value="101")

    assert limited.status_code == 429
    # The minute of the oldest is in the window for up to 61 minutes.
    assert 3600 <= int(limited.headers["Retry-After"]) <= 3660
    assert [(one["type"], one["passed"]) for one in limited.json()["data"]["results"]] == [
        ("rate-limit", False),
        ("spending-limit", True),
    ]
    assert agent.ok("GET", f"/vault/{agent.id}/transactions/{limited.json()['data']['txId']}")["status"] == "rejected"
    assert (refused.status_code, "Retry-After" in refused.headers) == (403, False)
    assert refused.json()["data"]["code"] == "policy_refused"


def test_a_day_limit_is_exact_and_counts_what_was_not_broadcast(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"))

    statuses = [order(agent, value=value).status_code for value in ("6", "5", "4", "1", "0")]

    assert statuses == [200, 403, 200, 403, 200]


async def test_many_at_once_never_spend_more_than_the_limit(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="20"))
    async with AsyncClient(base_url=agent.base_url, headers=agent.headers, timeout=30) as client:
        body = {"to": ADDRESS, "value": "1", "broadcast": False}
        answers = await asyncio.gather(*(client.post(f"/vault/{agent.id}/sign", json=body) for _ in range(60)))

    assert sorted(answer.status_code for answer in answers) == [200] * 20 + [403] * 40
    nonces = [one["nonce"] for one in agent.ok("GET", f"/vault/{agent.id}/transactions?status=signed")["transactions"]]
    assert sorted(nonces) == list(range(20))


def test_a_token_payment_is_judged_by_its_recipient_and_a_call_by_its_contract(tenant: Tenant) -> None:
    agent = tenant.agent(rule("approved-addresses", addresses=[OTHER_ADDRESS]))

    assert order(agent, to=ADDRESS, value="0", data=TRANSFER).status_code == 200
    assert order(agent, to=ADDRESS, value="0", data=TRANSFER.replace("22" * 20, "55" * 20)).status_code == 403
    assert order(agent, to=ADDRESS, value="0", data="0xdeadbeef").status_code == 403


def test_an_order_that_no_limit_covers_needs_approval(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="1000000"))

    answer = order(agent, value="0", data=TRANSFER)

    assert answer.status_code == 202
    assert answer.json()["data"]["results"][-1]["type"] == "uncovered-effect"


def test_the_record_has_every_field(agent: Agent) -> None:
    tx_id = order(agent, referenceId="order-7").json()["data"]["txId"]

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{tx_id}")

    expected = {
        "id": tx_id,
        "txId": tx_id,
        "agentId": agent.id,
        "kind": "evm",
        "status": "signed",
        "statusDetail": None,
        "reason": None,
        "toAddress": ADDRESS,
        "value": "1",
        "data": None,
        "chainId": 31337,
        "caip2": "eip155:31337",
        "nonce": 0,
        "broadcast": False,
        "referenceId": "order-7",
        "actionId": None,
        "policyResults": [],
        "replacesTxId": None,
        "broadcastAt": None,
        "confirmedAt": None,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["txHash"].startswith("0x")
    assert found["signedTransaction"].startswith("0x02")
    assert [effect["kind"] for effect in found["effects"]] == ["transfer", "fee"]
    assert {type(effect["amount"]) for effect in found["effects"]} == {str}
    assert found["createdAt"] <= found["signedAt"]
