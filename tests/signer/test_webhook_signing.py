"""Answers of the signer to the process that sends webhooks: signatures, and only for endpoints that are in use."""

import base64
import hashlib
import hmac
from typing import Any

import pytest

from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

DELIVERY = "00000000-0000-4000-8000-00000000000d"
NOBODYS = "00000000-0000-4000-8000-000000000000"
BODY = '{"id":"1","data":{"text":"ü"}}'.encode()


def as_person(service: Service, person: Person, name: str, body: dict[str, Any]) -> Any:
    with greet(service) as wire:
        return wire.ask(name, body, {"kind": "session", "value": person.session["token"]})


def ask_signature(service: Service, tenant: str, endpoint: str, **more: Any) -> Any:
    asked = {"tenant": tenant, "endpoint": endpoint, "delivery": DELIVERY, "timestamp": 1_700_000_000, "body": BODY}
    with greet(service, "scheduler") as wire:
        return wire.ask("SignDelivery", {**asked, **more})


@pytest.fixture
def endpoint(service: Service, as_owner: Person) -> dict[str, Any]:
    answer = as_person(service, as_owner, "CreateWebhook", {"url": "https://hooks.example.com/in"})
    assert answer["type"] == "Done"
    return answer["data"]


def test_a_delivery_gets_both_signatures(service: Service, as_owner: Person, endpoint: dict[str, Any]) -> None:
    headers = ask_signature(service, as_owner.tenant, endpoint["id"])["data"]

    secret = endpoint["secret"]
    own = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    said = f"{DELIVERY}.1700000000.".encode() + BODY
    standard = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), said, hashlib.sha256).digest()
    assert headers == {
        "X-Service-Signature": f"sha256={own}",
        "webhook-id": DELIVERY,
        "webhook-timestamp": "1700000000",
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
    }


def test_a_secret_has_256_bits_and_is_no_other_endpoints(service: Service, as_owner: Person) -> None:
    made = [as_person(service, as_owner, "CreateWebhook", {"url": "https://e.example.com"})["data"] for _ in range(2)]

    assert {len(base64.b64decode(each["secret"].removeprefix("whsec_"), validate=True)) for each in made} == {32}
    assert made[0]["secret"] != made[1]["secret"]


def test_nothing_is_signed_for_an_endpoint_of_nobody_or_of_another_tenant(
    service: Service, as_owner: Person, endpoint: dict[str, Any]
) -> None:
    assert ask_signature(service, as_owner.tenant, NOBODYS)["code"] == "webhook_absent"
    assert ask_signature(service, "another-tenant", endpoint["id"])["code"] == "webhook_absent"


def test_nothing_is_signed_while_an_endpoint_is_disabled(
    service: Service, as_owner: Person, endpoint: dict[str, Any]
) -> None:
    as_person(service, as_owner, "ChangeWebhook", {"webhook": endpoint["id"], "enabled": False})
    assert ask_signature(service, as_owner.tenant, endpoint["id"])["code"] == "webhook_disabled"

    as_person(service, as_owner, "ChangeWebhook", {"webhook": endpoint["id"], "enabled": True})
    assert ask_signature(service, as_owner.tenant, endpoint["id"])["type"] == "Done"


def test_nothing_is_signed_for_a_deleted_endpoint(service: Service, as_owner: Person, endpoint: dict[str, Any]) -> None:
    assert ask_signature(service, as_owner.tenant, endpoint["id"])["type"] == "Done"
    as_person(service, as_owner, "DeleteWebhook", {"webhook": endpoint["id"]})

    assert ask_signature(service, as_owner.tenant, endpoint["id"])["code"] == "webhook_absent"
