"""Transfers: who may ask for one, what is signed, what is refused, and once under a reference."""

import asyncio
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.authorised import Order
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, AsyncClient, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import new_key, new_signer
from tests.outside.evm_node import EvmNode
from tests.routes.orders import TOKEN_CONTRACT
from tests.routes.vault.transfers import fields, reference, transfer, with_signer

CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    """An agent with a signer that may authorise transfers."""
    return with_signer(as_owner, tenant.agent(), "transfer", "sign_transaction")


def test_an_agents_token_alone_is_not_enough(agent: Agent) -> None:
    answer = transfer(agent)

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "signer_required")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_native_transfer_is_signed(payer: Agent, evm_node: EvmNode) -> None:
    answer = transfer(payer, to=CHECKSUMMED.lower(), value="7")

    data = answer.json()["data"]
    row = payer.ok("GET", f"/vault/{payer.id}/transactions/{data['txId']}")
    assert answer.status_code == 200, answer.text
    assert data == {
        "id": data["id"],
        "actionId": data["id"],
        "type": "transfer",
        "agentId": payer.id,
        "status": "signed",
        "chainId": 31337,
        "caip2": "eip155:31337",
        "from": payer.evm_address,
        "to": CHECKSUMMED,
        "value": "7",
        "token": "native",
        "broadcast": False,
        "referenceId": None,
        "txId": data["id"],
        "txHash": row["txHash"],
        "policyResults": [],
        "createdAt": row["createdAt"],
    }
    assert (row["kind"], row["toAddress"], row["value"], row["data"]) == ("evm", CHECKSUMMED, "7", None)
    assert row["actionId"] == data["id"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"value": ...}, "amount_required"),
        ({"value": "1", "amountWei": "2"}, "two_amounts"),
        ({"value": ""}, "bad_body"),
        ({"value": "-1"}, "bad_body"),
        ({"value": "1e18"}, "bad_body"),
        ({"amountWei": 1.5, "value": ...}, "bad_body"),
        ({"value": str(2**256)}, "value_out_of_range"),
        ({"value": str(2**256), "token": TOKEN_CONTRACT}, "value_out_of_range"),
        ({"token": "0x" + "0" * 40}, "bad_token"),
        ({"token": "USDC"}, "bad_token"),
        ({"token": CHECKSUMMED.replace("a", "A")}, "bad_token"),
        ({"token": ADDRESS}, "bad_token"),
        ({"to": CHECKSUMMED.replace("a", "A")}, "bad_address"),
        ({"chainId": 101}, "unsupported_chain"),
        ({"chainId": 102}, "unsupported_chain"),
        ({"chainId": 999_999}, "unknown_chain"),
        ({"data": "0x"}, "bad_body"),
    ],
    ids=str,
)
def test_a_transfer_that_is_wrong_by_itself_is_400(
    as_owner: Person, agent: Agent, changed: dict[str, Any], code: str
) -> None:
    answer = as_owner.post(f"/vault/{agent.id}/actions/transfer/quote", json=fields(**changed))

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, code), answer.text


def test_a_transfer_that_is_broadcast_without_a_reference_is_400(payer: Agent) -> None:
    answer = transfer(payer, broadcast=True)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "reference_required")


def test_a_token_that_is_our_own_wallet_is_400(as_owner: Person, agent: Agent) -> None:
    quoted = as_owner.post(f"/vault/{agent.id}/actions/transfer/quote", json=fields(token=agent.evm_address))

    assert (quoted.status_code, quoted.json()["data"]["code"]) == (400, "bad_token")


def test_a_sponsored_transfer_is_403(as_owner: Person, agent: Agent) -> None:
    quoted = as_owner.post(f"/vault/{agent.id}/actions/transfer/quote", json=fields(sponsor=True))

    assert (quoted.status_code, quoted.json()["data"]["code"]) == (403, "sponsorship_unavailable")


def test_two_equal_amounts_are_one(as_owner: Person, agent: Agent) -> None:
    quoted = as_owner.ok("POST", f"/vault/{agent.id}/actions/transfer/quote", fields(value="5", amountWei="5"))

    assert quoted["value"] == "5"


def test_the_same_reference_pays_once(payer: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(payer.evm_address)
    sent: dict[str, Any] = {"broadcast": True, "referenceId": reference()}

    first, again = transfer(payer, **sent), transfer(payer, **sent)
    other = transfer(payer, **sent, chainId=1)

    assert (first.status_code, first.json()["data"]["status"]) == (200, "broadcast"), first.text
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (other.status_code, other.json()["data"]["code"]) == (409, "reference_taken")
    assert evm_node.sent_from(payer.evm_address) == 1


def test_references_are_an_agents_own(as_owner: Person, tenant: Tenant) -> None:
    first, second = (with_signer(as_owner, tenant.agent(), "transfer", "sign_transaction") for _ in range(2))

    answers = [transfer(agent, referenceId="same") for agent in (first, second)]
    signed = first.sign(referenceId="same")

    assert [answer.status_code for answer in (*answers, signed)] == [200] * 3
    assert len({answer.json()["data"]["txId"] for answer in (*answers, signed)}) == 3


def test_two_spellings_of_a_transfer_are_the_same(payer: Agent) -> None:
    first = transfer(payer, referenceId="same", to=CHECKSUMMED)
    again = transfer(
        payer, referenceId="same", to=CHECKSUMMED.lower(), amountWei="1", value=..., token="native", chainId=31337
    )

    assert (again.status_code, again.json()) == (200, first.json())


async def test_64_transfers_at_once_under_one_reference_are_one(
    payer: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    path, body = f"/vault/{payer.id}/actions/transfer", fields(referenceId="one")
    async with AsyncClient(base_url=payer.base_url, headers={**payer.headers, **payer.signer}, timeout=30) as client:
        answers = await asyncio.gather(*(client.post(path, json=body) for _ in range(64)))

    assert {answer.status_code for answer in answers} == {200}, {answer.text for answer in answers}
    assert len({answer.json()["data"]["txHash"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert await owner.fetchval("SELECT count(*) FROM transactions WHERE tenant_id = $1", tenant.id) == 1


def test_a_retry_tells_what_a_person_decided(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("auto-approve-threshold", threshold="0")))
    approved, denied = (transfer(agent, referenceId=name) for name in ("a", "b"))
    assert transfer(agent, referenceId="a").json() == approved.json()
    tenant.ok("POST", f"/vault/{agent.id}/approve/{approved.json()['data']['txId']}")
    tenant.ok("POST", f"/vault/{agent.id}/reject/{denied.json()['data']['txId']}")

    then = [transfer(agent, referenceId=name) for name in ("a", "b")]

    assert (approved.status_code, approved.json()["data"]["status"]) == (202, "pending_approval")
    assert approved.json()["data"]["code"] == "approval_required"
    assert [(answer.status_code, answer.json()["data"]["status"]) for answer in then] == [
        (200, "signed"),
        (403, "rejected"),
    ]
    assert (then[1].json()["data"]["code"], then[1].json()["error"]) == (
        "approval_denied",
        "A person denied this transfer.",
    )


async def test_a_retry_after_the_approval_expired_is_403(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("auto-approve-threshold", threshold="0")))
    approval = transfer(agent, referenceId="late").json()["data"]["approvalId"]
    await owner.execute("UPDATE approvals SET expires_at = service_now() - interval '1 ms' WHERE id = $1", approval)

    answer = await soon(
        lambda: transfer(agent, referenceId="late"), lambda answer: answer.status_code == 403, seconds=20
    )

    assert answer.json()["error"] == "Nobody approved this transfer in time."
    assert answer.json()["data"]["status"] == "rejected"


def test_a_refused_transfer_keeps_its_reference(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("approved-addresses", addresses=[OTHER_ADDRESS])))
    first = transfer(agent, referenceId="kept")
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [])

    again, new = transfer(agent, referenceId="kept"), transfer(agent, referenceId="new")

    assert (first.status_code, first.json()["data"]["code"]) == (403, "policy_refused")
    assert (again.status_code, again.json()) == (403, first.json())
    assert new.status_code == 200


async def test_a_throttled_transfer_leaves_its_reference_free(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("rate-limit", maxTxPerHour=1)))
    assert transfer(agent, referenceId="first").status_code == 200

    throttled = [transfer(agent, referenceId="second", key="the-second-transfer") for _ in range(2)]
    await owner.execute("DELETE FROM rate WHERE tenant_id = $1", tenant.id)
    then = transfer(agent, referenceId="second", key="the-second-transfer")

    assert [answer.status_code for answer in throttled] == [429, 429]
    assert {answer.json()["data"]["status"] for answer in throttled} == {"rejected"}
    assert {answer.json()["data"]["code"] for answer in throttled} == {"policy_rate_limited"}
    assert int(throttled[0].headers["Retry-After"]) > 3000
    assert throttled[0].headers["RateLimit-Remaining"] == "0"
    assert (then.status_code, "Idempotency-Replayed" in then.headers) == (200, False), then.text


def test_a_transfer_that_was_made_is_not_throttled_when_sent_again(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("rate-limit", maxTxPerHour=1)))

    first, again = transfer(agent, referenceId="only"), transfer(agent, referenceId="only")

    assert (first.status_code, again.status_code) == (200, 200)
    assert "X-RateLimit-Limit" not in again.headers


def test_a_success_says_what_is_left_of_its_rate(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    limited = with_signer(as_owner, tenant.agent(rule("rate-limit", maxTxPerHour=5, maxTxPerDay=3)))

    found = [transfer(limited).headers for _ in range(2)]
    without = transfer(with_signer(as_owner, agent)).headers

    for prefix in ("", "X-"):
        assert [headers[f"{prefix}RateLimit-Limit"] for headers in found] == ["3", "3"]
        assert [headers[f"{prefix}RateLimit-Remaining"] for headers in found] == ["2", "1"]
        assert all(80_000 < int(headers[f"{prefix}RateLimit-Reset"]) <= 90_000 for headers in found)
    assert [name for headers in found for name in headers if name == "retry-after"] == []
    assert "X-RateLimit-Limit" not in without


def test_a_key_and_a_reference_find_the_same_transfer(payer: Agent) -> None:
    first = transfer(payer, referenceId="both", key="the-same-request")

    by_key = transfer(payer, referenceId="both", key="the-same-request")
    by_reference = transfer(payer, referenceId="both", key="another-request")
    mismatch = transfer(payer, referenceId="other", key="the-same-request")

    assert by_key.json() == by_reference.json() == first.json()
    assert (mismatch.status_code, mismatch.json()["data"]["code"]) == (409, "idempotency_mismatch")


def test_a_frozen_agent_and_a_revoked_token_get_no_earlier_answer(payer: Agent, tenant: Tenant) -> None:
    assert transfer(payer, referenceId="before").status_code == 200
    tenant.ok("POST", f"/agents/{payer.id}/freeze", {"reason": "tried"})
    frozen = transfer(payer, referenceId="before")
    tenant.ok("DELETE", f"/agents/{payer.id}/tokens")
    revoked = transfer(payer, referenceId="before")

    assert (frozen.status_code, revoked.status_code) == (423, 401)


def test_a_transfer_is_replaced_at_higher_fees(payer: Agent) -> None:
    made = transfer(payer, referenceId="slow").json()["data"]["txId"]

    replaced = payer.post(f"/vault/{payer.id}/transactions/{made}/replace", json={})

    row = payer.ok("GET", f"/vault/{payer.id}/transactions/{replaced.json()['data']['txId']}")
    assert (row["replacesTxId"], row["actionId"], row["referenceId"]) == (made, None, "slow")
    assert transfer(payer, referenceId="slow").json()["data"]["txId"] == made


def test_a_signer_without_the_permission_authorises_no_transfer(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(), "sign_transaction")

    answer = transfer(agent)

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "signer_permission")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_signature_for_a_quote_authorises_no_transfer(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    key = new_key()
    signer = new_signer(as_owner, agent, key=key, permissions=["transfer"])["id"]
    path = f"/vault/{agent.id}/actions/transfer"
    quote, order = (Order(tenant.id, agent, f"{path}{end}") for end in ("/quote", ""))
    quote.key, quote.timestamp = order.key, order.timestamp

    refused = order.send(quote.signer_headers(signer, key))
    signed = order.send(order.signer_headers(signer, key))

    assert (refused.status_code, refused.json()["data"]["code"]) == (401, "signature_mismatch")
    assert (signed.status_code, signed.json()["data"]["status"]) == (200, "signed")


def test_a_transfer_of_a_person_is_for_owners_and_admins_with_a_recent_second_factor(
    service: Service, as_owner: Person, tenant: Tenant
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction="5"), rule("auto-approve-threshold", threshold="3"))
    path = f"/vault/{agent.id}/actions/transfer"
    with (
        closing(member(service, tenant, "developer", mfa=True)) as developer,
        closing(member(service, tenant, "admin")) as admin,
    ):
        refused = [client.post(path, json=fields()) for client in (developer, admin, tenant, agent)]
    by_rules = [as_owner.post(path, json=fields(value=value)) for value in ("3", "4", "6")]
    item = tenant.ok("GET", "/approvals")[0]
    tenant.ok("POST", f"/approvals/{item['id']}/approve")

    codes = ["wrong_role", "mfa_required", "wrong_kind", "signer_required"]
    assert [(one.status_code, one.json()["data"]["code"]) for one in refused] == [(403, code) for code in codes]
    assert [one.status_code for one in by_rules] == [200, 202, 403]
    assert tenant.ok("GET", f"/vault/{agent.id}/transactions/{item['txId']}")["status"] == "signed"


def test_a_retry_needs_a_signer_too(as_owner: Person, payer: Agent) -> None:
    assert transfer(payer, referenceId="once").status_code == 200
    as_owner.ok("DELETE", f"/agents/{payer.id}/signers/{payer.signer['X-Service-Signer-Id']}")

    answer = transfer(payer, referenceId="once")

    assert (answer.status_code, answer.json()["data"]["code"]) == (401, "signer_unknown")
