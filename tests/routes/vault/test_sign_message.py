"""Messages: signed as wallets sign them, refused where they could be something else, asked about where rules limit."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import rlp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from eth_account import Account
from eth_account.messages import encode_defunct
from httpx import Response
from solders.pubkey import Pubkey
from solders.signature import Signature

from custody.kit.clock import iso
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.orders import CHAIN, SOLANA_CHAIN, message, solana_payment

SITE = "app.example.com"
LEGACY = [b"\7", b"\4\xa8\x17\xc8\0", b"\x52\x08", b"\x11" * 20, b"\1", b"", b"\1", b"", b""]


def path(agent: Agent) -> str:
    return f"/vault/{agent.id}/sign-message"


def sign(agent: Agent, **body: Any) -> Response:
    return agent.post(path(agent), json={"chainFamily": "evm", **body})


def simulate(client: Agent, agent: Agent, body: Any) -> Response:
    return client.post(f"/vault/{agent.id}/simulate", json={"kind": "message", "request": body})


def sign_in(address: str, *, domain: str = SITE, chain: int = CHAIN, issued: timedelta = timedelta()) -> str:
    now = datetime.now(UTC) + issued
    return (
        f"{domain} wants you to sign in with your Ethereum account:\n{address}\n\nSign in to Example.\n\n"
        f"URI: https://{domain}/login\nVersion: 1\nChain ID: {chain}\nNonce: 32891756abcDEF\nIssued At: {iso(now)}"
    )


def solana_sign_in(address: str, *, domain: str = SITE) -> str:
    return (
        f"{domain} wants you to sign in with your Solana account:\n{address}\n\n"
        f"URI: https://{domain}\nVersion: 1\nChain ID: devnet\nNonce: oBbLoEldZs\nIssued At: {iso(datetime.now(UTC))}"
    )


def verify(agent: Agent, content: bytes, signature: str) -> None:
    """Another library than ours checks the signature of the Solana wallet; it raises InvalidSignature."""
    raw = bytes(Signature.from_string(signature))
    Ed25519PublicKey.from_public_bytes(bytes(Pubkey.from_string(agent.solana_address))).verify(raw, content)


TEXTS = ["hello", "Grüße, 世界 🎉", "two\nlines\n", "a\0b\x7f", "\ufeffBOM", "a\r\nb", "0x" + "ab" * 32, "x" * 16_384]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
def test_a_text_is_signed_as_wallets_sign_it(agent: Agent, text: str) -> None:
    answer, bare = sign(agent, message=text), sign(agent, message=text, chainFamily="solana")

    data = answer.json()["data"]
    assert (answer.status_code, set(data)) == (200, {"signature", "txId"})
    assert len(data["signature"]) == 132
    assert Account.recover_message(encode_defunct(text=text), signature=data["signature"]) == agent.evm_address
    verify(agent, text.encode(), bare.json()["data"]["signature"])


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"hello", bytes(range(64)), b"\xffsolana offchain" + bytes(99)])
def test_bytes_are_signed_as_wallets_sign_them(agent: Agent, content: bytes) -> None:
    answer = sign(agent, raw="0x" + content.hex())
    bare = sign(agent, raw=base64.b64encode(content).decode(), chainFamily="solana")

    signature = answer.json()["data"]["signature"]
    assert Account.recover_message(encode_defunct(primitive=content), signature=signature) == agent.evm_address
    verify(agent, content, bare.json()["data"]["signature"])


def test_the_record_shows_the_message_and_the_signature(agent: Agent) -> None:
    signed = sign(agent, message="hello\0", referenceId="m-1", chainId=137).json()["data"]
    bare = sign(agent, raw="aGVsbG8h", chainFamily="solana", chainId=SOLANA_CHAIN).json()["data"]

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{signed['txId']}")
    assert (found["kind"], found["status"], found["signature"]) == ("evm_message", "signed", signed["signature"])
    assert (found["data"], found["referenceId"]) == ({"message": "hello\0"}, "m-1")
    assert (found["chainId"], found["caip2"], found["broadcast"]) == (137, "eip155:137", False)
    assert [found[name] for name in ("txHash", "nonce", "value", "toAddress", "signedTransaction")] == [None] * 5
    (effect,) = found["effects"]
    assert (effect["kind"], effect["label"], effect["size"], effect["unknown"]) == ("unread", "bytes", 6, True)
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{bare['txId']}")
    assert (found["kind"], found["data"]) == ("solana_message", {"raw": "aGVsbG8h"})
    assert found["signature"] == bare["signature"]
    assert (found["chainId"], found["caip2"][:7]) == (SOLANA_CHAIN, "solana:")
    listed = agent.ok("GET", f"/vault/{agent.id}/transactions?kind=evm_message")
    assert [one["txId"] for one in listed["transactions"]] == [signed["txId"]]


def test_a_replay_has_the_same_signature_and_another_message_is_refused(agent: Agent) -> None:
    key = {"Idempotency-Key": "message-0001"}
    first = agent.post(path(agent), json=message(), headers=key)

    assert agent.post(path(agent), json=message(), headers=key).json() == first.json()
    assert agent.post(path(agent), json=message("other"), headers=key).status_code == 409
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


# ---- refused


def of_solana_payment(agent: Agent) -> str:
    return str(solana_payment(agent, 1)["transaction"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "Send one of message and raw."),
        ({"message": "a", "raw": "0x61"}, "Send one of message and raw."),
        ({"raw": "0x" + "ab" * 32}, "raw has 32 bytes, as a hash has; hashes are not signed. Send what was hashed."),
        ({"raw": "0x1901" + "ab" * 64}, "raw begins with 0x19"),
        ({"message": "\x19Ethereum Signed Message:\n2hi"}, "message begins with 0x19"),
        ({"raw": "0x" + rlp.encode(LEGACY).hex()}, "raw can be read as a transaction"),
        ({"raw": "0x616"}, "raw must be 0x and bytes in hex for an EVM wallet."),
        ({"raw": "aGVsbG8="}, "raw must be 0x and bytes in hex for an EVM wallet."),
        ({"raw": "0x68656c6c6f", "chainFamily": "solana"}, "raw must be bytes in standard base64"),
        ({"raw": "aGVsbG9=", "chainFamily": "solana"}, "raw must be bytes in standard base64"),
        ({"message": "é" * 8_193}, "message must be 1 to 16,384 bytes."),
        ({"chainId": 9, "message": "a", "chainFamily": "solana"}, "Chain 9 is no Solana chain"),
    ],
)
def test_a_refusal_tells_its_cure(agent: Agent, body: dict[str, Any], said: str) -> None:
    for answer in (sign(agent, **body), simulate(agent, agent, {"chainFamily": "evm", **body})):
        assert (answer.status_code, answer.json()["error"][: len(said)]) == (400, said)
        assert answer.json()["data"]["code"] in ("bad_message", "unknown_chain")
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


@pytest.mark.parametrize(
    "body",
    [
        {"message": ""},
        {"message": "x" * 16_385},
        {"raw": "0x" + "61" * 16_385},
        {"message": "a", "chainFamily": "bitcoin"},
        {"message": "a", "encoding": "utf8"},
        {"message": ["a"]},
        {"message": "a", "chainId": 0},
    ],
)
def test_a_body_that_the_contract_forbids_is_refused(agent: Agent, body: dict[str, Any]) -> None:
    assert sign(agent, **body).status_code == 400


def test_half_of_a_surrogate_pair_is_refused(agent: Agent) -> None:
    headers = {"Content-Type": "application/json"}
    answer = agent.post(path(agent), content=b'{"chainFamily":"evm","message":"\\ud800"}', headers=headers)

    assert answer.status_code == 400


def test_a_transaction_of_solana_is_no_message(agent: Agent) -> None:
    transaction = of_solana_payment(agent)
    whole = base64.b64decode(transaction)

    for content in (whole, whole[65:]):
        answer = sign(agent, raw=base64.b64encode(content).decode(), chainFamily="solana")
        assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_message")


def test_a_sign_in_of_another_wallet_is_refused(agent: Agent) -> None:
    for answer in (
        sign(agent, message=sign_in("0x" + "11" * 20)),
        sign(agent, message=solana_sign_in(agent.solana_address)),
        sign(agent, message=sign_in(agent.evm_address), chainFamily="solana"),
        simulate(agent, agent, message(sign_in("0x" + "11" * 20))),
    ):
        assert (answer.status_code, answer.json()["data"]["code"]) == (400, "message_not_ours")


def test_a_chain_that_contradicts_the_sign_in_is_refused(agent: Agent) -> None:
    answer = sign(agent, message=sign_in(agent.evm_address, chain=137), chainId=1)

    assert answer.json()["error"] == "chainId is eip155:1, and the message says eip155:137; leave chainId out."
    assert sign(agent, message=sign_in(agent.evm_address, chain=137), chainId=137).status_code == 200


# ---- by the rules

LIMIT = rule("spending-limit", maxPerDay="1000")
LISTED = rule("message-allowlist", siweDomains=[SITE], siwsDomains=[SITE], patterns=["Example: log in as *"])


def test_a_listed_sign_in_is_signed_and_any_other_message_waits_for_a_person(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT, rule("allowed-chains", chains=[CHAIN, SOLANA_CHAIN]), LISTED)

    listed = sign(agent, message=sign_in(agent.evm_address))
    bare = sign(agent, message=solana_sign_in(agent.solana_address), chainFamily="solana")
    waits = sign(agent, message=sign_in(agent.evm_address, domain="evil.example"))

    assert (listed.status_code, bare.status_code, waits.status_code) == (200, 200, 202)
    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{bare.json()['data']['txId']}")
    assert (found["chainId"], found["effects"][0]["label"]) == (SOLANA_CHAIN, f"sign-in: {SITE}")
    assert sign(agent, message=sign_in(agent.evm_address, chain=1)).status_code == 403
    assert sign(agent, message="Example: log in as me").status_code == 403
    assert sign(agent, message="Example: log in as me", chainId=CHAIN).status_code == 200


def test_a_person_approves_the_message_and_its_signature_is_in_the_record(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT)
    queued = sign(agent, message="Grüße").json()["data"]

    (item,) = tenant.ok("GET", "/approvals")
    assert (item["kind"], item["effects"][0]["label"]) == ("evm_message", "message")
    assert "no enabled message-allowlist lists the message" in queued["results"][-1]["reason"]
    tenant.ok("POST", f"/approvals/{item['id']}/approve", {"digest": item["digest"]})

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{queued['txId']}")
    assert found["status"] == "signed"
    assert Account.recover_message(encode_defunct(text="Grüße"), signature=found["signature"]) == agent.evm_address


def test_a_denied_message_is_never_signed(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT)
    queued = sign(agent, message="hello", chainFamily="solana").json()["data"]

    (item,) = tenant.ok("GET", "/approvals")
    tenant.ok("POST", f"/approvals/{item['id']}/deny", {"digest": item["digest"], "reason": "no"})

    found = agent.ok("GET", f"/vault/{agent.id}/transactions/{queued['txId']}")
    assert (found["status"], found["signature"]) == ("rejected", None)


def test_a_simulation_says_what_would_become_of_a_message(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT, LISTED)

    listed, other = (
        simulate(agent, agent, message(text)).json()["data"] for text in ("Example: log in as me", "hello")
    )

    assert (listed["decision"], listed["needed"], listed["fee"]) == ("sign", [], None)
    assert (other["decision"], other["needed"]) == ("queue", ["approval"])
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []


def test_messages_count_in_rate_limits(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=2))

    assert [sign(agent, message=text).status_code for text in ("one", "two", "three")] == [200, 200, 429]


def test_the_audit_log_names_it(agent: Agent, as_owner: Person) -> None:
    signed = sign(agent, message="hello").json()["data"]

    found = as_owner.ok("GET", f"/audit/events?resourceId={signed['txId']}")["data"]

    assert [one["action"] for one in found] == ["tx.signed"]


def test_other_rules_are_tried_on_past_messages(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT)
    queued = sign(agent, message="Example: log in as me").json()["data"]["txId"]

    found = tenant.ok("POST", f"/agents/{agent.id}/policies/backtest", {"policies": [LIMIT, LISTED], "days": 1})

    assert [(one["txId"], one["was"], one["now"]) for one in found["changed"]] == [(queued, "queue", "sign")]
