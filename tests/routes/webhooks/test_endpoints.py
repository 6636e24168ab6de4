"""Webhook endpoints over HTTP: made, changed, deleted; which addresses are refused."""

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from custody.webhooks.names import SUBSCRIBABLE
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import partner_of
from tests.fixtures.people import Person, member, says
from tests.fixtures.server import Service
from tests.outside.wallet import Wallet

URL = "https://hooks.example.com/in?of=us"
EVENTS = list(SUBSCRIBABLE)
PUBLIC = {"domain": "custody.example.com", "uri": "https://custody.example.com/"}


def make(person: Person, url: str = URL, **fields: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = person.ok("POST", "/webhooks", {"url": url, **fields})
    return webhook


@pytest.fixture(scope="module")
def owner_of_tenant(service: Service) -> Iterator[Person]:
    """For the tests whose requests are refused, so that nothing is left."""
    with new_tenant(service) as tenant, closing(member(service, tenant, "owner", mfa=True)) as somebody:
        yield somebody


def test_a_new_endpoint_has_the_defaults_and_shows_its_secret(as_owner: Person) -> None:
    answer = as_owner.post("/webhooks", json={"url": URL})

    webhook = answer.json()["data"]
    assert answer.status_code == 201
    assert base64.b64decode(webhook.pop("secret").removeprefix("whsec_"), validate=True)
    assert webhook.pop("id")
    assert webhook.pop("createdAt").endswith("Z")
    assert webhook == {
        "tenantId": as_owner.tenant,
        "url": URL,
        "events": EVENTS,
        "enabled": True,
        "disabledReason": None,
        "maxRetries": 5,
        "retryBackoffMs": 60_000,
        "description": None,
    }


def test_one_endpoint_is_read_without_its_secret(as_owner: Person) -> None:
    webhook = make(as_owner)
    webhook.pop("secret")

    assert as_owner.ok("GET", f"/webhooks/{webhook['id']}") == webhook
    as_owner.ok("DELETE", f"/webhooks/{webhook['id']}")
    gone = as_owner.get(f"/webhooks/{webhook['id']}")
    assert (gone.status_code, gone.json()["data"]["code"]) == (404, "webhook_absent")


def test_a_list_has_everything_but_the_secrets_newest_first(as_owner: Person) -> None:
    first, second = make(as_owner), make(as_owner, events=["tx.signed", "tx.denied"], description="ours", maxRetries=0)

    answer = as_owner.get("/webhooks")

    wanted = [{name: value for name, value in one.items() if name != "secret"} for one in (second, first)]
    assert answer.json()["data"] == wanted
    assert answer.headers["X-Total-Count"] == "2"
    assert wanted[0]["events"] == ["tx.denied", "tx.signed"]
    assert [one["id"] for one in as_owner.ok("GET", "/webhooks?limit=1&offset=1")] == [first["id"]]


async def test_the_secret_is_kept_sealed_and_nowhere_else(as_owner: Person, owner: asyncpg.Connection) -> None:
    webhook = make(as_owner)

    kept = await owner.fetchval(
        "SELECT blob FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2",
        as_owner.tenant,
        webhook["id"],
    )
    rows = await owner.fetch("SELECT e::text FROM webhook_endpoints e WHERE id = $1", webhook["id"])
    told = await owner.fetch("SELECT a::text FROM audit a WHERE tenant_id = $1", as_owner.tenant)
    assert webhook["secret"].encode() not in kept
    assert webhook["secret"] not in str([*rows, *told])


def test_a_second_request_with_the_same_key_does_not_show_the_secret_again(as_owner: Person) -> None:
    headers = {"Idempotency-Key": "a webhook of ours"}
    first = as_owner.post("/webhooks", json={"url": URL}, headers=headers)

    again = as_owner.post("/webhooks", json={"url": URL}, headers=headers)

    assert first.status_code == 201
    assert (again.status_code, again.json()["data"]["code"]) == (409, "idempotency_secret_shown")
    assert len(as_owner.ok("GET", "/webhooks")) == 1


def test_a_change_changes_what_it_names_and_nothing_else(as_owner: Person) -> None:
    webhook = make(as_owner, description="ours", events=["tx.signed"])
    webhook.pop("secret")

    changed = as_owner.ok("PUT", f"/webhooks/{webhook['id']}", {"enabled": False, "retryBackoffMs": 1000})
    cleared = as_owner.ok("PUT", f"/webhooks/{webhook['id']}", {"events": None, "description": None})

    assert changed == {**webhook, "enabled": False, "retryBackoffMs": 1000}
    assert cleared == {**changed, "events": EVENTS, "description": None}
    assert as_owner.ok("GET", "/webhooks") == [cleared]


def test_a_deleted_endpoint_is_gone(as_owner: Person) -> None:
    webhook = make(as_owner)
    path = f"/webhooks/{webhook['id']}"

    assert as_owner.ok("DELETE", path) == {"deleted": webhook["id"]}

    assert as_owner.ok("GET", "/webhooks") == []
    after = [as_owner.put(path, json={}), as_owner.delete(path), as_owner.post(f"{path}/test")]
    after += [as_owner.get(f"{path}/deliveries"), as_owner.get(f"{path}/deliveries/export")]
    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in after} == {(404, "webhook_absent")}


async def test_changes_of_webhooks_are_audited(as_owner: Person, owner: asyncpg.Connection) -> None:
    webhook = make(as_owner)["id"]
    as_owner.ok("PUT", f"/webhooks/{webhook}", {"url": "https://other.example.com:8443/token?token"})
    as_owner.ok("POST", f"/webhooks/{webhook}/test")
    as_owner.ok("DELETE", f"/webhooks/{webhook}")

    rows = await owner.fetch(
        "SELECT action, actor_id, metadata FROM audit WHERE tenant_id = $1 AND resource_id = $2 ORDER BY seq",
        as_owner.tenant,
        webhook,
    )
    assert [row["action"] for row in rows] == [
        "webhook.created",
        "webhook.changed",
        "webhook.tested",
        "webhook.deleted",
    ]
    assert {row["actor_id"] for row in rows} == {as_owner.id}
    # Where events were led to is told, but an address may have a token in its path.
    told = [json.loads(row["metadata"]) for row in rows[:2]]
    assert [one["host"] for one in told] == ["hooks.example.com", "other.example.com:8443"]
    assert "token" not in str([row["metadata"] for row in rows])


async def test_of_a_change_of_something_else_no_host_is_told(as_owner: Person, owner: asyncpg.Connection) -> None:
    webhook = make(as_owner)["id"]
    as_owner.ok("PUT", f"/webhooks/{webhook}", {"description": "another"})

    metadata = await owner.fetchval(
        "SELECT metadata FROM audit WHERE resource_id = $1 AND action = 'webhook.changed'", webhook
    )
    assert json.loads(metadata)["changed"] == ["description"]
    assert "host" not in json.loads(metadata)


def test_an_endpoint_is_nothing_to_another_tenant(service: Service, as_owner: Person, other_tenant: Tenant) -> None:
    webhook = make(as_owner)["id"]
    with closing(member(service, other_tenant, "owner", mfa=True)) as stranger:
        answers = [
            stranger.put(f"/webhooks/{webhook}", json={"enabled": False}),
            stranger.delete(f"/webhooks/{webhook}"),
            stranger.post(f"/webhooks/{webhook}/test"),
            stranger.get(f"/webhooks/{webhook}/deliveries"),
            stranger.get(f"/webhooks/{webhook}/deliveries/export"),
        ]
        assert stranger.ok("GET", "/webhooks") == []

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(404, "webhook_absent")}
    assert as_owner.ok("GET", "/webhooks")[0]["enabled"]


def test_a_tenant_has_fifty_at_most(as_owner: Person) -> None:
    ids = [make(as_owner)["id"] for _ in range(50)]

    refused = as_owner.post("/webhooks", json={"url": URL})
    as_owner.ok("DELETE", f"/webhooks/{ids[0]}")

    assert (refused.status_code, refused.json()["data"]["code"]) == (409, "quota_exceeded")
    assert make(as_owner)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "ftp://hooks.example.com/",
        "//hooks.example.com/",
        "hooks.example.com",
        "x",
        "https://user:secret@hooks.example.com/",
        "https://user@hooks.example.com/",
        "https://hooks.example.com/#part",
        "https://10.0.0.1/",
        "https://192.168.1.1:8443/",
        "https://172.16.0.1/",
        "https://169.254.169.254/latest",
        "https://169.254.1.1/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://[fc00::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://metadata.google.internal/",
        "https://printer.local/",
        "https://intranet/",
        "https://hooks.example.com\\@evil.example.com/",
        "https://hooks.example.com /",
        "https://hooks.example.com/\n",
        "https://hooks.example.com:0/",
        "https://h\u00f6oks.example.com/",
        "https:///in",
        "https://",
    ],
)
def test_an_address_where_no_webhook_may_go_is_refused(owner_of_tenant: Person, url: str) -> None:
    answer = owner_of_tenant.post("/webhooks", json={"url": url})

    data = answer.json()["data"]
    assert (answer.status_code, data["code"], data["fields"]) == (400, "bad_webhook_url", ["url"])
    assert "secret" not in answer.text


def test_a_bad_address_is_refused_in_a_change_too(as_owner: Person) -> None:
    webhook = make(as_owner)["id"]

    answer = as_owner.put(f"/webhooks/{webhook}", json={"url": "https://10.0.0.1/"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_webhook_url")
    assert as_owner.ok("GET", "/webhooks")[0]["url"] == URL


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": 1}, "url"),
        ({"url": ""}, "url"),
        ({"url": f"https://e.example.com/{'x' * 2048}"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["webhook.test"]}, "events"),
        ({"events": ["tx.*"]}, "events"),
        ({"events": "tx.signed"}, "events"),
        ({"maxRetries": 11}, "maxRetries"),
        ({"maxRetries": -1}, "maxRetries"),
        ({"maxRetries": "5"}, "maxRetries"),
        ({"retryBackoffMs": 999}, "retryBackoffMs"),
        ({"retryBackoffMs": 86_400_001}, "retryBackoffMs"),
        ({"description": "x" * 1001}, "description"),
        ({"description": "\x00"}, "description"),
        ({"secret": "whsec_mine"}, "secret"),
        ({"enabled": True}, "enabled"),
    ],
    ids=str,
)
def test_a_bad_field_is_named(owner_of_tenant: Person, body: dict[str, Any], field: str) -> None:
    answer = owner_of_tenant.post("/webhooks", json=body if not body or field == "url" else {"url": URL, **body})

    assert answer.status_code == 400
    assert [name.partition("[")[0] for name in answer.json()["data"]["fields"]] == [field]


def test_on_loopback_a_receiver_may_be_there_too(as_owner: Person) -> None:
    urls = ("http://localhost:9/", "http://127.0.0.1:9/x", "http://[::1]:9/", "https://localhost/")

    assert {make(as_owner, url)["url"] for url in urls} == set(urls)


def test_where_the_world_reaches_the_service_loopback_is_no_target(service: Service) -> None:
    urls = ("http://localhost:9/", "https://localhost/", "https://127.0.0.1/", "https://[::1]/", "https://a.localhost/")
    with (
        partner_of(service, SERVICE_PUBLIC_URL="https://custody.example.com") as public,
        closing(Person(base_url=public.url, timeout=30)) as person,
    ):
        signed = Wallet().sign_in(says(public, person.ok("GET", "/auth/nonce")["nonce"], **PUBLIC))
        person.take(person.ok("POST", "/auth/verify", {"message": signed.message, "signature": signed.signature}))
        person.enrol_totp()

        refused = [person.post("/webhooks", json={"url": url}) for url in urls]
        assert make(person)["url"] == URL

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in refused} == {(400, "bad_webhook_url")}
