"""Solana transactions: executed by a real runtime, judged by what every instruction does."""

import base64
from typing import Any

import pytest
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from tests.fixtures.callers import Agent, Tenant, rule
from tests.outside.solana_messages import token_account
from tests.outside.solana_node import SolanaNode
from tests.routes.orders import RECEIVER, solana_payment, token_payment, unknown_instruction, with_sponsor

SOL = 10**9


def path(agent: Agent) -> str:
    return f"/vault/{agent.id}/sign-solana"


def blockhash(node: SolanaNode) -> str:
    return node.rpc("getLatestBlockhash")["value"]["blockhash"]


def balance(node: SolanaNode, address: str = RECEIVER) -> int:
    return node.rpc("getBalance", address)["value"]


def test_a_payment_is_signed_and_executed(agent: Agent, solana_node: SolanaNode) -> None:
    solana_node.fund(agent.solana_address, SOL)
    before = balance(solana_node)
    order = {**solana_payment(agent, SOL // 2, blockhash=blockhash(solana_node)), "broadcast": True}

    answer = agent.post(path(agent), json=order)

    data = answer.json()["data"]
    assert answer.status_code == 200, answer.text
    assert set(data) == {"txId", "signature", "broadcast", "chainId", "caip2"}
    assert (data["broadcast"], data["chainId"], data["caip2"].split(":")[0]) == (True, 102, "solana")
    assert balance(solana_node) == before + SOL // 2
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{data['txId']}")
    assert (found["status"], found["txHash"], found["kind"]) == ("broadcast", data["signature"], "solana")


def test_the_signed_solana_transaction_is_valid_and_unchanged(agent: Agent, solana_node: SolanaNode) -> None:
    order = solana_payment(agent, 5)

    data = agent.ok("POST", path(agent), order)

    signed = VersionedTransaction.from_bytes(base64.b64decode(data["signedTransaction"]))
    asked = VersionedTransaction.from_bytes(base64.b64decode(order["transaction"]))
    assert signed.verify_with_results() == [True]
    assert signed.message == asked.message
    assert str(signed.signatures[0]) == data["signature"]


def test_tokens_are_paid_and_counted(tenant: Tenant, solana_node: SolanaNode) -> None:
    mint = solana_node.create_mint()
    agent = tenant.agent(rule("spending-limit", maxPerDay="700", asset=f"solana:{mint}"))
    solana_node.fund(agent.solana_address, SOL)
    solana_node.mint_to(mint, agent.solana_address, 1000)
    solana_node.mint_to(mint, RECEIVER, 1)

    orders = [
        {**token_payment(agent, mint, amount, blockhash=blockhash(solana_node)), "broadcast": True}
        for amount in (600, 200)
    ]
    answers = [agent.post(path(agent), json=order) for order in orders]

    account = str(token_account(Pubkey.from_string(RECEIVER), Pubkey.from_string(mint)))
    assert [answer.status_code for answer in answers] == [200, 403], answers[0].text
    assert solana_node.rpc("getTokenAccountBalance", account)["value"]["amount"] == "601"
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "600"


def test_rent_of_new_recipients_is_allowed_up_to_the_days_limit(tenant: Tenant, solana_node: SolanaNode) -> None:
    mint = solana_node.create_mint()
    limit = {"maxPerDay": "700", "asset": f"solana:{mint}"}
    agent = tenant.agent(rule("spending-limit", **limit))
    solana_node.fund(agent.solana_address, SOL)
    solana_node.mint_to(mint, agent.solana_address, 1000)

    def pay_somebody_new() -> Any:
        to = str(Keypair().pubkey())
        order = token_payment(agent, mint, 5, to=to, blockhash=blockhash(solana_node), creates=True)
        return agent.post(path(agent), json={**order, "broadcast": True})

    asked = pay_somebody_new()
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", **limit, maxRentPerDay="4078560")])
    answers = [pay_somebody_new() for _ in range(3)]

    assert asked.status_code == 202, asked.text
    assert "no rule covers rent of 0.00203928 SOL for a new token account of" in asked.text
    assert [answer.status_code for answer in answers] == [200, 200, 403], answers[0].text
    done = agent.ok("GET", f"/vault/{agent.id}/transactions/{answers[0].json()['data']['txId']}")
    assert [(one["kind"], one["amount"], one.get("label")) for one in done["effects"]][1] == ("fee", "2039280", "rent")
    page = agent.ok("GET", f"/dashboard/{agent.id}")
    assert [(one["asset"], one["spent"]) for one in page["budgets"]] == [
        (f"solana:{mint}", "10"),
        ("solana:rent", "4078560"),
    ]
    assert [(one["asset"], one["symbol"], one["today"]) for one in page["spend"]["assets"]] == [
        (f"solana:{mint}", None, "10"),
        ("solana:rent", "SOL", "4078560"),
    ]


@pytest.mark.parametrize("changed", [{"value": "6"}, {"value": "0"}, {"to": "11111111111111111111111111111111"}])
def test_declared_fields_must_match_the_instructions(agent: Agent, changed: dict[str, str]) -> None:
    answer = agent.post(path(agent), json={**solana_payment(agent, 5), **changed})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "declared_mismatch")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_an_unknown_instruction_is_refused_by_name(agent: Agent) -> None:
    answer = agent.post(path(agent), json=unknown_instruction(agent))

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "solana_unsupported")
    assert answer.json()["data"]["instruction"]
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_another_wallets_money_is_not_ours_to_sign(tenant: Tenant, agent: Agent) -> None:
    answer = agent.post(path(agent), json=solana_payment(tenant.agent(), 5))

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "solana_unsupported")


def test_a_payment_above_the_threshold_waits(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="5", asset="solana:native"))

    assert agent.post(path(agent), json=solana_payment(agent, 5)).status_code == 200
    assert agent.post(path(agent), json=solana_payment(agent, 6)).status_code == 202
    item = tenant.ok("GET", "/approvals")[0]
    assert (item["kind"], item["toAddress"], item["value"], item["chainId"]) == ("solana", RECEIVER, "6", 102)


def test_an_approved_payment_gets_a_fresh_blockhash_and_is_executed(tenant: Tenant, solana_node: SolanaNode) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    solana_node.fund(agent.solana_address, SOL)
    before = balance(solana_node)
    queued = agent.post(
        path(agent), json={**solana_payment(agent, SOL // 4, blockhash=blockhash(solana_node)), "broadcast": True}
    )
    solana_node.expire_blockhash()

    approved = tenant.ok("POST", f"/approvals/{queued.json()['data']['approvalId']}/approve", {})

    assert balance(solana_node) == before + SOL // 4
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["txHash"] == approved["txHash"]


@pytest.mark.parametrize(
    "transaction",
    ["", "AAAA", "not base64!", "A" * 1645, "AAA", None, 5, "////" * 100],
    ids=lambda text: repr(text)[:16],
)
def test_bytes_that_are_no_transaction_are_400(agent: Agent, transaction: Any) -> None:
    assert agent.post(path(agent), json={**solana_payment(agent, 5), "transaction": transaction}).status_code == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"to": "0x" + "11" * 20},
        {"to": "l" * 40},
        {"value": "-5"},
        {"value": 5},
        {"chainId": 1},
        {"chainId": 7},
        {"to": ""},
    ],
    ids=str,
)
def test_a_malformed_field_is_400(agent: Agent, changed: dict[str, Any]) -> None:
    assert agent.post(path(agent), json={**solana_payment(agent, 5), **changed}).status_code == 400


def test_without_a_node_an_order_is_signed_unless_it_must_be_broadcast(agent: Agent) -> None:
    order = {**solana_payment(agent, 5), "chainId": 101}

    unsent, sent = agent.post(path(agent), json=order), agent.post(path(agent), json={**order, "broadcast": True})

    assert unsent.status_code == 200
    assert (sent.status_code, sent.json()["data"]["code"]) == (502, "rpc_unavailable")


def test_an_expired_blockhash_is_refused_by_the_node_and_the_order_stays_signed(
    agent: Agent, solana_node: SolanaNode
) -> None:
    solana_node.fund(agent.solana_address, SOL)
    old = blockhash(solana_node)
    solana_node.expire_blockhash()

    answer = agent.post(path(agent), json={**solana_payment(agent, 5, blockhash=old), "broadcast": True})

    assert (answer.status_code, answer.json()["data"]["status"]) == (502, "signed")
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["status"] == "signed"


@pytest.fixture
def sponsor(solana_node: SolanaNode) -> Keypair:
    """Somebody who pays the fee of others."""
    made = Keypair()
    solana_node.fund(str(made.pubkey()), SOL)
    return made


def complete(signed: str, sponsor: Keypair) -> bytes:
    """Complete the bytes as a sponsor does: with their own signature in its empty place, first."""
    ours = VersionedTransaction.from_bytes(base64.b64decode(signed))
    assert ours.signatures[0] == Signature.default()
    theirs = sponsor.sign_message(to_bytes_versioned(ours.message))
    whole = VersionedTransaction.populate(ours.message, [theirs, *ours.signatures[1:]])
    assert all(whole.verify_with_results())
    return bytes(whole)


def send(node: SolanaNode, raw: bytes) -> None:
    node.rpc("sendTransaction", base64.b64encode(raw).decode(), {"encoding": "base64"})


def test_a_payment_whose_fee_somebody_else_pays_is_signed_before_they_sign(
    tenant: Tenant, solana_node: SolanaNode, sponsor: Keypair
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay=str(SOL), asset="solana:native"))
    solana_node.fund(agent.solana_address, SOL)
    order = with_sponsor(solana_payment(agent, SOL // 2, blockhash=blockhash(solana_node)), sponsor.pubkey())
    before = balance(solana_node)

    answer = agent.ok("POST", path(agent), order)
    send(solana_node, complete(answer["signedTransaction"], sponsor))

    assert balance(solana_node) == before + SOL // 2
    assert balance(solana_node, agent.solana_address) == SOL // 2
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer['txId']}")
    assert (found["status"], found["txHash"], found["signature"]) == ("signed", None, answer["signature"])
    assert [one["kind"] for one in found["effects"]] == ["transfer"]
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == str(SOL // 2)
    receipt = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer['txId']}/receipt")["receipt"]
    assert (receipt["txHash"], receipt["effects"]) == (None, found["effects"])


def test_the_service_broadcasts_nothing_that_a_sponsor_signs_last(agent: Agent, sponsor: Keypair) -> None:
    order = with_sponsor(solana_payment(agent, 5), sponsor.pubkey())

    answer = agent.post(path(agent), json={**order, "broadcast": True})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "solana_unsupported")
    assert "send `broadcast` false" in answer.json()["error"]
    assert agent.post(path(agent), json=order).status_code == 200


def test_an_approved_payment_of_a_sponsor_who_has_not_signed_gets_a_fresh_blockhash(
    tenant: Tenant, solana_node: SolanaNode, sponsor: Keypair
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    solana_node.fund(agent.solana_address, SOL)
    before = balance(solana_node)
    order = with_sponsor(solana_payment(agent, SOL // 4, blockhash=blockhash(solana_node)), sponsor.pubkey())
    queued = agent.post(path(agent), json=order).json()["data"]
    solana_node.expire_blockhash()

    tenant.ok("POST", f"/approvals/{queued['approvalId']}/approve", {})

    signed = agent.ok("GET", f"/vault/{agent.id}/transactions/{queued['txId']}")["signedTransaction"]
    send(solana_node, complete(signed, sponsor))
    assert balance(solana_node) == before + SOL // 4


def test_an_approved_payment_of_a_sponsor_who_signed_is_stale(
    tenant: Tenant, solana_node: SolanaNode, sponsor: Keypair
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    order = with_sponsor(solana_payment(agent, 5, blockhash=blockhash(solana_node)), sponsor.pubkey())
    content = VersionedTransaction.from_bytes(base64.b64decode(order["transaction"])).message
    theirs = sponsor.sign_message(to_bytes_versioned(content))
    whole = VersionedTransaction.populate(content, [theirs, Signature.default()])
    queued = agent.post(path(agent), json={**order, "transaction": base64.b64encode(bytes(whole)).decode()})

    answer = tenant.post(f"/approvals/{queued.json()['data']['approvalId']}/approve", json={})

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "approval_stale")


def test_a_payment_that_a_sponsor_signed_first_is_broadcast_and_known_by_their_signature(
    agent: Agent, solana_node: SolanaNode, sponsor: Keypair
) -> None:
    solana_node.fund(agent.solana_address, SOL)
    order = with_sponsor(solana_payment(agent, SOL // 4, blockhash=blockhash(solana_node)), sponsor.pubkey())
    content = VersionedTransaction.from_bytes(base64.b64decode(order["transaction"])).message
    theirs = sponsor.sign_message(to_bytes_versioned(content))
    whole = base64.b64encode(bytes(VersionedTransaction.populate(content, [theirs, Signature.default()]))).decode()

    data = agent.ok("POST", path(agent), {**order, "transaction": whole, "broadcast": True})

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{data['txId']}")
    assert (found["status"], found["txHash"]) == ("broadcast", str(theirs))
    assert data["signature"] != str(theirs)
    assert agent.ok("GET", f"/vault/{agent.id}/transactions/{data['txId']}/receipt")["receipt"]["txHash"] == str(theirs)


def test_tokens_for_a_blocked_owner_are_refused_whatever_is_declared(tenant: Tenant) -> None:
    agent = tenant.agent(rule("approved-addresses", mode="blacklist", addresses=[RECEIVER]))
    mint = str(Keypair().pubkey())
    order = token_payment(agent, mint, 5)
    account = str(token_account(Pubkey.from_string(RECEIVER), Pubkey.from_string(mint)))

    for to in (RECEIVER, account):
        answer = agent.post(path(agent), json={**order, "to": to})
        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "policy_refused"), to
        assert f"{RECEIVER} is a blocked address" in answer.text
