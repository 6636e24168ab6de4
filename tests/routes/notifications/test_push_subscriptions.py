"""Browsers of a person's own: whose they are, how many, and what may be one."""

from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.each import each
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside.push_browser import PushBrowser

PATH = "/user/me/push-subscriptions"
ENDPOINT = "https://push.example.com/send/a-long-secret-part-wxyz"


def subscription(**fields: Any) -> dict[str, Any]:
    return {"endpoint": ENDPOINT, **PushBrowser().keys, **fields}


def test_a_browser_is_shown_without_its_address_and_keys(as_owner: Person) -> None:
    body = subscription(description="my phone")

    made = as_owner.ok("POST", PATH, body)

    assert (made["kind"], made["host"], made["lastFour"]) == ("webpush", "push.example.com", "wxyz")
    assert as_owner.ok("GET", PATH) == [made]
    log = as_owner.ok("GET", "/audit/events?action=channel.created")["data"]
    said = str([made, log])
    secrets = ["a-long-secret", body["p256dh"], body["auth"], body["senderKey"]]
    assert ([secret for secret in secrets if secret in said], made["id"] in said) == ([], True)


def test_a_browser_is_its_persons_own(service: Service, tenant: Tenant, as_owner: Person) -> None:
    made = as_owner.ok("POST", PATH, subscription())
    with closing(member(service, tenant, "owner", mfa=True)) as other:
        seen = [other.ok("GET", PATH), other.ok("GET", "/notification-channels")]
        refused = [
            other.delete(f"{PATH}/{made['id']}"),
            other.delete(f"/notification-channels/{made['id']}"),
            other.get(f"/notification-channels/{made['id']}"),
            other.patch(f"/notification-channels/{made['id']}", json={"enabled": False}),
            other.post(f"/notification-channels/{made['id']}/test"),
            other.get(f"/notification-channels/{made['id']}/deliveries"),
        ]

    assert seen == [[], []]
    assert {one.json()["data"]["code"] for one in refused} == {"channel_absent"}
    assert as_owner.ok("GET", PATH) == [made]
    assert as_owner.ok("DELETE", f"{PATH}/{made['id']}") == {"deleted": made["id"]}
    assert as_owner.ok("GET", PATH) == []


def test_a_person_has_five_browsers_and_the_next_person_too(service: Service, tenant: Tenant, as_owner: Person) -> None:
    for _ in range(5):
        as_owner.ok("POST", PATH, subscription())

    refused = as_owner.post(PATH, json=subscription())
    with closing(member(service, tenant, "admin", mfa=True)) as other:
        other.ok("POST", PATH, subscription())

    data = refused.json()["data"]
    assert (refused.status_code, data["code"], data["limit"]) == (409, "quota_exceeded", 5)


@pytest.mark.parametrize("role", ["viewer", "developer", "member"])
def test_a_person_who_decides_nothing_is_told_nothing(service: Service, tenant: Tenant, role: str) -> None:
    with closing(member(service, tenant, role, mfa=True)) as person:
        answer = person.post(PATH, json=subscription())

    assert answer.status_code == 403


@each(
    ("field", "value"),
    [
        ("endpoint", "http://push.example.com/x"),
        ("endpoint", "https://10.0.0.1/x"),
        ("endpoint", "https://169.254.169.254/x"),
        ("endpoint", "https://user@push.example.com/x"),
        ("endpoint", "https://push.internal/x"),
        # Of the right length and shape, off the curve; a compressed point; the first number that is no key.
        ("p256dh", "B" + "A" * 86),
        ("p256dh", PushBrowser().keys["p256dh"][:44]),
        ("auth", "A" * 20),
        ("auth", "A" * 23),
        ("senderKey", "A" * 43),
        ("senderKey", "_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE"),
        ("kind", "slack"),
    ],
)
def test_a_subscription_that_nobody_could_send_to_is_refused(as_owner: Person, field: str, value: str) -> None:
    answer = as_owner.post(PATH, json=subscription(**{field: value}))

    assert answer.status_code == 400
    assert value not in answer.text or len(value) < 6
    assert as_owner.ok("GET", PATH) == []


def test_a_browser_is_no_channel_of_a_tenant(as_owner: Person) -> None:
    answer = as_owner.post("/notification-channels", json={"kind": "webpush", "target": ENDPOINT})

    assert answer.status_code == 400
