"""Webhooks and receipts, checked by the client: those of the service are taken, and nothing else is."""

import base64
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.receipts.canonical import canonical
from tests.fixtures.callers import ADDRESS, Agent
from tests.fixtures.each import each
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.routes.webhooks.receivers import running_receiver
from tests.sdk.conftest import token_of
from tests.sdk.test_statements import BODY, SECRET, delivery_of
from tests.sdk.typescript.conftest import Client, Thrown


def test_a_delivery_of_the_service_is_taken(client: Client, agent: Agent, as_owner: Person) -> None:
    with running_receiver() as receiver:
        made = as_owner.ok("POST", "/webhooks", {"url": receiver.url("/200"), "events": ["tx.signed"]})
        agent.sign(ADDRESS, 1)
        found = eventually(lambda: list(receiver.received))[0]

    event = client.call("verifyWebhook", made["secret"], dict(found.headers), found.body)

    assert (event["event"], event["data"]["to"]) == ("tx.signed", ADDRESS)
    with pytest.raises(Thrown, match=r"NotGenuine .*another secret"):
        client.call("verifyWebhook", SECRET, dict(found.headers), found.body)


def test_during_a_change_of_the_secret_one_signature_of_several_is_enough(client: Client) -> None:
    headers, other = delivery_of(), delivery_of(secret=b"t" * 32)["Webhook-Signature"]
    headers["Webhook-Signature"] = f"{other} {headers['Webhook-Signature']}"

    assert client.call("verifyWebhook", SECRET, headers, BODY) == json.loads(BODY)
    assert client.call("verifyWebhook", SECRET, headers, BODY.decode()) == json.loads(BODY)


@each(
    "changed",
    [
        {"Webhook-Id": "e"},
        {"Webhook-Id": None},
        {"Webhook-Timestamp": "1"},
        {"Webhook-Timestamp": "x"},
        {"Webhook-Timestamp": ""},
        {"Webhook-Timestamp": "9" * 30},
        {"Webhook-Signature": ""},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "é"},
        {"Webhook-Signature": ["v1,"]},
        {"Webhook-Signature": "v1,x " * 1000},
    ],
    ids=repr,
)
def test_a_delivery_that_was_changed_is_not_taken(client: Client, changed: dict[str, Any]) -> None:
    with pytest.raises(Thrown, match="NotGenuine"):
        client.call("verifyWebhook", SECRET, delivery_of() | changed, BODY)


@each("seconds", [-301, 301])
def test_a_delivery_of_another_time_is_not_taken(client: Client, seconds: int) -> None:
    headers = delivery_of(at=1_000_000)

    assert client.call("verifyWebhook", SECRET, headers, BODY, 1_000_000 + seconds * 299 / 301)
    with pytest.raises(Thrown, match="five minutes"):
        client.call("verifyWebhook", SECRET, headers, BODY, 1_000_000 + seconds)


@each("body", [b"", b"[]", b"{", b"\xff", b"x" * (2**20 + 1)], ids=lambda body: repr(body[:9]))
def test_a_body_that_is_no_event_is_not_taken(client: Client, body: bytes) -> None:
    with pytest.raises(Thrown, match="NotGenuine"):
        client.call("verifyWebhook", SECRET, delivery_of(body), body)


@each("secret", ["", "whsec_", "whsec_x", "whsec_" + base64.b64encode(b"short").decode(), None])
def test_a_secret_that_everybody_has_is_none(client: Client, secret: Any) -> None:
    with pytest.raises(Thrown, match="the secret must be"):
        client.call("verifyWebhook", secret, delivery_of(secret=b""), BODY)


# ---- receipts


def test_a_receipt_of_the_service_is_proven_and_a_changed_one_is_not(client: Client, agent: Agent) -> None:
    tx_id = agent.sign(ADDRESS, 7).json()["data"]["txId"]
    jwks = agent.get("/.well-known/jwks.json").json()
    answer = client.make(str(agent.base_url), token_of(agent)).call("vault.receipt", tx_id)
    receipt = answer["receipt"]

    stated = client.call("verifyReceipt", answer, jwks, {"txId": tx_id, "issuer": receipt["issuer"]})

    assert (stated["txId"], stated["value"]) == (tx_id, "7")
    for change, why in (
        ({"receipt": receipt | {"value": "8"}}, "does not fit"),
        ({"signature": answer["signature"][::-1]}, "."),
        ({"signature": answer["signature"] + "="}, "base64url"),
        ({"kid": "another"}, "no key"),
    ):
        with pytest.raises(Thrown, match=f"NotGenuine .*{why}"):
            client.call("verifyReceipt", answer | change, jwks)
    with pytest.raises(Thrown, match="another transaction"):
        client.call("verifyReceipt", answer, jwks, {"txId": "another"})
    with pytest.raises(Thrown, match="another issuer"):
        client.call("verifyReceipt", answer, jwks, {"issuer": "https://example.com"})


def test_a_key_of_another_use_proves_no_receipt(client: Client) -> None:
    key = Ed25519PrivateKey.generate()
    x = base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")
    receipt = {"format": "custody-receipt-v1", "txId": "t"}
    signature = base64.urlsafe_b64encode(key.sign(canonical(receipt))).decode().rstrip("=")
    jwk = {"kid": "k", "kty": "OKP", "crv": "Ed25519", "x": x, "use": "receipt"}
    answer = {"receipt": receipt, "signature": signature, "kid": "k"}

    assert client.call("verifyReceipt", answer, {"keys": [jwk]}) == receipt
    # Two keys of one name: which one is meant nobody can tell.
    wrong = [[jwk | change] for change in ({"use": "sig"}, {"use": None}, {"crv": "X25519"}, {"kty": "EC"})]
    for keys in [*wrong, [jwk, jwk], [], None]:
        with pytest.raises(Thrown, match="NotGenuine"):
            client.call("verifyReceipt", answer, {"keys": keys})


@each("value", [1.5, 2**53, -(2**53), {"é": 1}, "\ud800", {"a": [{"b": 0.1}]}], ids=repr)
def test_a_receipt_with_more_than_one_spelling_proves_nothing(client: Client, value: object) -> None:
    with pytest.raises(Thrown, match="NotGenuine"):
        client.call("canonical", {"value": value})


@each("value", ['é\n\t\u2028\x7f\x00"\\/', 2**53 - 1, None, True, {"b": 1, "a": [], "A": {}}, "", "😀"], ids=repr)
def test_the_clients_spelling_is_the_signers(client: Client, value: object) -> None:
    assert bytes.fromhex(client.call("canonical", {"z": value, "a": 1})) == canonical({"z": value, "a": 1})


def test_a_delivery_is_fresh_for_five_minutes(client: Client) -> None:
    assert client.call("verifyWebhook", SECRET, delivery_of(at=time.time() - 200), BODY) == json.loads(BODY)
