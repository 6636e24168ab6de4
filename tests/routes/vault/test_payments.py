"""Payments that servers demand by x402: built here, judged as what they move, and good for whom they pay."""

import base64
import json
import time
from typing import Any

import asyncpg
import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from tests.fixtures.callers import Agent, Tenant, rule
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT
from tests.routes.orders import payment_demand as demand
from tests.routes.orders import payment_offer as offer

ASSET = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
NAMED = rule("approved-addresses", addresses=[SELLER], mode="whitelist")
AUTHORIZATION = "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce"


def path(agent: Agent) -> str:
    """The route."""
    return f"/vault/{agent.id}/x402"


def payload(answer: dict[str, Any]) -> dict[str, Any]:
    """The payment, as whom it pays reads it."""
    found: dict[str, Any] = json.loads(base64.b64decode(answer["value"], validate=True))
    return found


def recover(document: dict[str, Any], signature: str) -> str:
    """Tell whose signature it is, as another library reads the document."""
    message = encode_typed_data(document["domain"], document["types"], document["message"])
    return str(Account.recover_message(message, signature=signature))


def fields(text: str) -> list[dict[str, str]]:
    """The fields of a struct type."""
    return [dict(zip(("type", "name"), each.split(), strict=True)) for each in text.split(",")]


def transfer_document(authorization: dict[str, str]) -> dict[str, Any]:
    """The document that a token by EIP-3009 checks."""
    numbers = {name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")}
    return {
        "domain": {"name": "USDX", "version": "1", "chainId": CHAIN, "verifyingContract": TOKEN_CONTRACT},
        "types": {"TransferWithAuthorization": fields(AUTHORIZATION)},
        "message": authorization | numbers | {"nonce": bytes.fromhex(authorization["nonce"][2:])},
    }


def test_an_approver_is_told_how_often_it_was_paid_there_before(tenant: Tenant) -> None:
    agent, other = tenant.agent(NAMED), tenant.agent(NAMED)
    here, there = "https://api.example.com/v1/quote", "https://api.example.org/v1/quote"

    def pay(payer: Agent, resource: str) -> Any:
        return payer.post(path(payer), json={"demand": demand(), "resource": resource}).json()["data"]

    def count(resource: str) -> Any:
        return tenant.ok("GET", f"/approvals/{pay(agent, resource)['approvalId']}")["paidBefore"]

    assert [pay(agent, here).keys() >= {"value"}, pay(agent, here).keys() >= {"value"}] == [True, True]
    assert agent.sign(SELLER, 1, data="0x12").status_code in (200, 202)
    # Another agent's, another host's, and orders of another kind are none of them.
    pay(other, here), pay(agent, there)
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("auto-approve-threshold", asset=ASSET, threshold="1")])

    assert [count(here), count(there), count("https://api.example.net/")] == [2, 1, 0]
    # What still waits, and what was denied, was not paid.
    assert count(here) == 2
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("auto-approve-threshold", threshold="1")])
    assert tenant.ok("GET", f"/approvals/{agent.sign(value=7).json()['data']['approvalId']}")["paidBefore"] is None


def test_a_payment_is_made_as_the_seller_demands_it(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED)
    asked = demand(extensions={"bazaar": {"info": {"a": 1}}})

    answer = agent.ok("POST", path(agent), {"demand": asked, "referenceId": "weather-1"})

    paid = payload(answer)
    authorization = paid["payload"]["authorization"]
    assert (answer["header"], answer["asset"], answer["amount"]) == ("PAYMENT-SIGNATURE", ASSET, "60")
    assert {name: paid[name] for name in ("x402Version", "accepted", "resource", "extensions")} == {
        "x402Version": 2,
        "accepted": asked["accepts"][0],
        "resource": asked["resource"],
        "extensions": asked["extensions"],
    }
    assert (authorization["to"], authorization["value"], authorization["validAfter"]) == (SELLER, "60", "0")
    assert recover(transfer_document(authorization), paid["payload"]["signature"]) == agent.evm_address
    assert 0 < int(authorization["validBefore"]) - time.time() <= 121


def test_the_record_tells_what_was_paid_where(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED)
    made = agent.ok("POST", path(agent), {"demand": demand(), "referenceId": "weather-2"})

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{made['txId']}")

    assert (found["kind"], found["status"], found["toAddress"]) == ("x402", "signed", SELLER)
    assert found["data"] == {
        "offer": offer(),
        "host": "api.example.com",
        "path": "/weather",
        "description": "Weather today",
    }
    [moved] = found["effects"]
    assert (moved["kind"], moved["asset"], moved["amount"], moved["to"]) == ("transfer", ASSET, "60", SELLER.lower())


@pytest.mark.parametrize(
    "url", ["https://api.example.com\u202e/moc", "https://\u0430pi.example.com/", "https://a.b/\0"]
)
def test_a_place_in_letters_that_mislead_is_shown_to_nobody(tenant: Tenant, url: str) -> None:
    agent = tenant.agent()

    agent.post(path(agent), json={"demand": demand(resource={"url": url})})

    [found] = agent.ok("GET", f"/vault/{agent.id}/history")
    shown = agent.ok("GET", f"/vault/{agent.id}/transactions/{found['txId']}")["data"]
    assert found["status"] == "pending_approval"
    assert {"host", "path"}.isdisjoint(shown)


@pytest.mark.parametrize("method", ["eip3009", "permit2", "upto"])
def test_each_way_to_pay_counts_what_it_may_move(tenant: Tenant, method: str) -> None:
    agent = tenant.agent(NAMED, rule("spending-limit", maxPerDay="100", asset=ASSET))
    ways: dict[str, dict[str, Any]] = {
        "eip3009": {},
        "permit2": {"extra": {"assetTransferMethod": "permit2"}},
        "upto": {"scheme": "upto", "extra": {"facilitatorAddress": "0x" + "55" * 20}},
    }

    answers = [agent.post(path(agent), json={"demand": demand(offer(**ways[method]))}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 403], answers[0].text
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"


def test_a_header_and_an_object_of_either_version_are_taken(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED)
    tenth = offer(network="base-sepolia", maxAmountRequired="7", resource="https://api.example.com/", description="")
    first = {"x402Version": 1, "accepts": [{name: each for name, each in tenth.items() if name != "amount"}]}
    header = base64.b64encode(json.dumps(demand()).encode()).decode()

    by_header, by_object = (agent.ok("POST", path(agent), {"demand": each}) for each in (header, first))

    assert (by_header["header"], by_object["header"]) == ("PAYMENT-SIGNATURE", "X-PAYMENT")
    paid = payload(by_object)
    assert (paid["x402Version"], paid["scheme"], paid["network"]) == (1, "exact", "base-sepolia")
    assert paid["payload"]["authorization"]["value"] == "7"


def test_a_person_decides_about_whom_no_rule_names(tenant: Tenant) -> None:
    unnamed, named = tenant.agent(), tenant.agent(NAMED)
    other = demand(offer(payTo="0x" + "66" * 20))

    waiting = unnamed.post(path(unnamed), json={"demand": demand()})

    assert waiting.status_code == 202, waiting.text
    [result] = [one for one in waiting.json()["data"]["results"] if not one["passed"]]
    assert result["type"] == "approved-addresses"
    assert named.post(path(named), json={"demand": other}).status_code == 403


@pytest.mark.parametrize("payee", ["0x" + "00" * 20, "the wallet"])
def test_a_payment_to_nobody_or_to_the_wallet_is_never_made(tenant: Tenant, payee: str) -> None:
    agent = tenant.agent()
    payee = agent.evm_address if payee == "the wallet" else payee

    answer = agent.post(path(agent), json={"demand": demand(offer(payTo=payee))})

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "payment_refused")


@pytest.mark.parametrize(
    "asked",
    [
        {"x402Version": 2},
        demand(offer(network="eip155:999")),
        demand(*[offer()] * 9),
        "AAAA",
        demand(offer(amount="0")),
    ],
    ids=["no offers", "another network", "nine offers", "no json", "nothing"],
)
def test_an_unpayable_demand_is_told_so(agent: Agent, asked: object) -> None:
    answer = agent.post(path(agent), json={"demand": asked})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "offer_unpayable")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_the_same_key_is_the_same_payment(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED, rule("spending-limit", maxPerDay="100", asset=ASSET))
    body, key = {"demand": demand()}, {"Idempotency-Key": "weather-of-monday"}

    answers = [agent.post(path(agent), json=body, headers=key).json()["data"] for _ in range(3)]

    assert answers[0]["value"] == answers[1]["value"] == answers[2]["value"]
    other = agent.post(path(agent), json={"demand": demand(offer(amount="61"))}, headers=key)
    assert (other.status_code, other.json()["data"]["code"]) == (409, "idempotency_mismatch")
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"


def test_an_approval_makes_the_payment_when_it_is_given(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100", asset=ASSET))
    body, key = {"demand": demand(offer(maxTimeoutSeconds=30))}, {"Idempotency-Key": "weather-of-tuesday"}
    waiting = agent.post(path(agent), json=body, headers=key).json()["data"]
    [item] = tenant.ok("GET", "/approvals")
    assert (item["kind"], item["toAddress"], item["effects"][0]["amount"]) == ("x402", SELLER, "60")

    tenant.ok("POST", f"/approvals/{waiting['approvalId']}/approve", {})

    answer = agent.post(path(agent), json=body, headers=key)
    assert answer.status_code == 200, answer.text
    authorization = payload(answer.json()["data"])["payload"]["authorization"]
    assert 500 < int(authorization["validBefore"]) - time.time() <= 601
    assert recover(transfer_document(authorization), payload(answer.json()["data"])["payload"]["signature"])
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"


def test_an_approval_pays_once_and_by_the_rules_of_then(tenant: Tenant) -> None:
    agents = [tenant.agent(rule("spending-limit", maxPerDay="100", asset=ASSET)) for _ in range(2)]
    items = [agent.post(path(agent), json={"demand": demand()}).json()["data"]["approvalId"] for agent in agents]
    tighter = [rule("spending-limit", maxPerDay="59", asset=ASSET)]
    tenant.ok("PUT", f"/agents/{agents[1].id}/policies", tighter)

    answers = [tenant.post(f"/approvals/{item}/approve", json={}) for item in (items[0], *items)]

    assert [answer.status_code for answer in answers] == [200, 409, 403], [answer.text for answer in answers]
    spent = [agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] for agent in agents]
    assert spent == ["60", "0"]


async def test_an_approval_that_comes_too_late_pays_nothing(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100", asset=ASSET))
    item = agent.post(path(agent), json={"demand": demand()}).json()["data"]["approvalId"]
    await owner.execute("UPDATE approvals SET expires_at = service_now() - interval '1 second' WHERE id = $1", item)

    late = tenant.post(f"/approvals/{item}/approve", json={})

    assert late.status_code == 409, late.text
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "0"


def test_a_server_that_wants_payments_named_gets_the_name(tenant: Tenant) -> None:
    agent = tenant.agent(NAMED)
    declared = {"payment-identifier": {"info": {"required": True}, "schema": {"type": "object"}}}
    body, key = {"demand": demand(extensions=declared)}, {"Idempotency-Key": "weather-of-friday"}

    first, again = (payload(agent.post(path(agent), json=body, headers=key).json()["data"]) for _ in range(2))

    told = first["extensions"]["payment-identifier"]
    assert (told["info"]["required"], told["schema"]) == (True, {"type": "object"})
    assert told["info"]["id"].startswith("pay_")
    assert len(told["info"]["id"]) == 36
    assert first == again
