"""Webhooks and receipts, checked by the client: those of the service are taken, and nothing else is."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from custody_sdk import NotGenuine, verify_receipt, verify_webhook
from custody_sdk.receipts import canonical
from standardwebhooks import Webhook

from custody.receipts.canonical import canonical as ours
from tests.fixtures.callers import ADDRESS, Agent, Tenant
from tests.fixtures.each import each
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.routes.webhooks.receivers import running_receiver
from tests.sdk.conftest import vault_of

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BODY = b'{"id": "e", "event": "tx.signed"}'


def delivery_of(body: bytes = BODY, *, secret: bytes = b"s" * 32, at: float | None = None) -> dict[str, str]:
    """The headers of a delivery."""
    moment = str(int(time.time() if at is None else at))
    signature = hmac.digest(secret, f"d.{moment}.".encode() + body, hashlib.sha256)
    said = "v1," + base64.b64encode(signature).decode()
    return {"Webhook-Id": "d", "Webhook-Timestamp": moment, "Webhook-Signature": said}


def test_a_delivery_of_the_service_is_taken(agent: Agent, as_owner: Person) -> None:
    with running_receiver() as receiver:
        made = as_owner.ok("POST", "/webhooks", {"url": receiver.url("/200"), "events": ["tx.signed"]})
        agent.sign(ADDRESS, 1)
        found = eventually(lambda: list(receiver.received))[0]

    event = verify_webhook(made["secret"], dict(found.headers), found.body)

    assert (event["event"], event["data"]["to"]) == ("tx.signed", ADDRESS)
    with pytest.raises(NotGenuine, match="another secret"):
        verify_webhook(SECRET, dict(found.headers), found.body)


def test_a_delivery_is_taken_as_another_library_takes_it() -> None:
    headers = delivery_of()

    assert verify_webhook(SECRET, headers, BODY) == json.loads(BODY)
    assert Webhook(SECRET).verify(BODY, {name.lower(): value for name, value in headers.items()}) == json.loads(BODY)


def test_during_a_change_of_the_secret_one_signature_of_several_is_enough() -> None:
    headers, other = delivery_of(), delivery_of(secret=b"t" * 32)["Webhook-Signature"]
    headers["Webhook-Signature"] = f"{other} {headers['Webhook-Signature']}"

    assert verify_webhook(SECRET, headers, BODY)


@each(
    "changed",
    [
        {"Webhook-Id": "e"},
        {"Webhook-Timestamp": "1"},
        {"Webhook-Timestamp": "x"},
        {"Webhook-Timestamp": ""},
        {"Webhook-Timestamp": "9" * 30},
        {"Webhook-Signature": ""},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "é"},
        {"Webhook-Signature": "v1,x " * 1000},
    ],
    ids=repr,
)
def test_a_delivery_that_was_changed_is_not_taken(changed: dict[str, str]) -> None:
    with pytest.raises(NotGenuine):
        verify_webhook(SECRET, delivery_of() | changed, BODY)


@each("seconds", [-301, 301])
def test_a_delivery_of_another_time_is_not_taken(seconds: int) -> None:
    headers = delivery_of(at=1_000_000)

    assert verify_webhook(SECRET, headers, BODY, now=1_000_000 + seconds * 299 / 301)
    with pytest.raises(NotGenuine, match="five minutes"):
        verify_webhook(SECRET, headers, BODY, now=1_000_000 + seconds)


@each("body", [b"", b"[]", b"{", b"x" * (2**20 + 1)], ids=lambda body: repr(body[:9]))
def test_a_body_that_is_no_event_is_not_taken(body: bytes) -> None:
    with pytest.raises(NotGenuine):
        verify_webhook(SECRET, delivery_of(body), body)


@each("secret", ["", "whsec_", "whsec_x", "whsec_" + base64.b64encode(b"short").decode()])
def test_a_secret_that_everybody_has_is_none(secret: str) -> None:
    with pytest.raises(NotGenuine, match="the secret must be"):
        verify_webhook(secret, delivery_of(secret=b""), BODY)


# ---- receipts


def test_a_receipt_of_the_service_is_proven_and_a_changed_one_is_not(agent: Agent, tenant: Tenant) -> None:
    tx_id = agent.sign(ADDRESS, 7).json()["data"]["txId"]
    jwks = agent.get("/.well-known/jwks.json").json()
    with vault_of(agent) as vault:
        answer: dict[str, Any] = dict(vault.receipt(tx_id))

    stated = verify_receipt(answer, jwks, tx_id=tx_id, issuer=answer["receipt"]["issuer"])

    assert (stated["txId"], stated["value"]) == (tx_id, "7")
    for change, why in (
        ({"receipt": answer["receipt"] | {"value": "8"}}, "does not fit"),
        ({"signature": answer["signature"][::-1]}, "."),
        ({"signature": answer["signature"] + "="}, "base64url"),
        ({"kid": "another"}, "no key"),
    ):
        with pytest.raises(NotGenuine, match=why):
            verify_receipt(answer | change, jwks)
    with pytest.raises(NotGenuine, match="another transaction"):
        verify_receipt(answer, jwks, tx_id="another")
    with pytest.raises(NotGenuine, match="another issuer"):
        verify_receipt(answer, jwks, issuer="https://example.com")


def test_a_key_of_another_use_proves_no_receipt() -> None:
    key = Ed25519PrivateKey.generate()
    x = base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")
    receipt = {"format": "custody-receipt-v1", "txId": "t"}
    signature = base64.urlsafe_b64encode(key.sign(canonical(receipt))).decode().rstrip("=")
    jwk = {"kid": "k", "kty": "OKP", "crv": "Ed25519", "x": x, "use": "receipt"}
    answer = {"receipt": receipt, "signature": signature, "kid": "k"}

    assert verify_receipt(answer, {"keys": [jwk]}) == receipt
    for other in ({"use": "sig"}, {"use": None}, {"crv": "X25519"}, {"kty": "EC"}):
        with pytest.raises(NotGenuine):
            verify_receipt(answer, {"keys": [jwk | other]})
    # Two keys of one name: which one is meant nobody can tell.
    with pytest.raises(NotGenuine):
        verify_receipt(answer, {"keys": [jwk, jwk]})


@each("value", [1.5, 2**53, -(2**53), {"é": 1}, "\ud800", {"a": [{"b": 0.1}]}], ids=repr)
def test_a_receipt_with_more_than_one_spelling_proves_nothing(value: object) -> None:
    with pytest.raises(NotGenuine):
        canonical({"value": value})


@each("value", ['é\n\t\u2028\x7f\x00"\\/', 2**53 - 1, None, True, {"b": 1, "a": [], "A": {}}, ""], ids=repr)
def test_the_clients_spelling_is_the_signers(value: object) -> None:
    assert canonical({"z": value, "a": 1}) == ours({"z": value, "a": 1})
