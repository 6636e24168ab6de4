"""Deliveries over HTTP: listed, exported, tried again, replayed, tested."""

import csv
import io
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.webhooks.receivers import Receiver, running_receiver

FIELDS = [
    "id",
    "eventType",
    "status",
    "attempts",
    "maxAttempts",
    "nextRetryAt",
    "hasError",
    "createdAt",
    "deliveredAt",
]
NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def endpoint(person: Person, url: str, **fields: Any) -> str:
    return str(person.ok("POST", "/webhooks", {"url": url, **fields})["id"])


def deliveries(person: Person, webhook: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = person.ok("GET", f"/webhooks/{webhook}/deliveries{query}")
    return found


def over(person: Person, webhook: str, count: int = 1) -> list[dict[str, Any]]:
    """The deliveries, once so many were tried."""
    return eventually(
        lambda: deliveries(person, webhook),
        lambda found: len(found) == count and all(one["status"] in ("delivered", "failed") for one in found),
    )


def sign(agent: Agent) -> None:
    assert agent.sign().status_code == 200


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


async def set_to(owner: asyncpg.Connection, delivery: str, **columns: Any) -> None:
    """Put a delivery into a state that it passes too quickly to be met."""
    for column, value in columns.items():
        await owner.execute(f"UPDATE deliveries SET {column} = $2 WHERE id = $1", delivery, value)


def test_deliveries_are_listed_without_their_payload(as_owner: Person, agent: Agent, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/listed?token=ours"), events=["tx.signed"])
    sign(agent)

    found = over(as_owner, webhook)[0]
    assert list(found) == FIELDS
    assert {name: found[name] for name in FIELDS[1:7]} == {
        "eventType": "tx.signed",
        "status": "delivered",
        "attempts": 1,
        "maxAttempts": 6,
        "nextRetryAt": None,
        "hasError": False,
    }
    assert found["deliveredAt"] >= found["createdAt"]
    sent = receiver.at("/200/listed?token=ours")
    assert [(one.headers["webhook-id"], one.envelope["event"]) for one in sent] == [(found["id"], "tx.signed")]


def test_an_endpoint_gets_what_it_subscribed_to_and_nothing_else(
    as_owner: Person, agent: Agent, receiver: Receiver
) -> None:
    wants = endpoint(as_owner, receiver.url("/200/wants"))
    wants_not = endpoint(as_owner, receiver.url("/200/not"), events=["tx.denied"])
    disabled = endpoint(as_owner, receiver.url("/200/disabled"))
    as_owner.ok("PUT", f"/webhooks/{disabled}", {"enabled": False})
    sign(agent)

    assert over(as_owner, wants)[0]["eventType"] == "tx.signed"
    assert deliveries(as_owner, wants_not) == deliveries(as_owner, disabled) == []


async def test_filters_pages_and_the_total(as_owner: Person, receiver: Receiver, owner: asyncpg.Connection) -> None:
    webhook = endpoint(as_owner, receiver.url())
    for event, status, error in (
        ("tx.signed", "delivered", None),
        ("tx.signed", "failed", "timeout"),
        ("tx.denied", "failed", "status"),
    ):
        await owner.execute(
            "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, error, max_attempts) "
            "VALUES ($1, $2, $3, '', $4, $5, 6)",
            as_owner.tenant,
            webhook,
            event,
            status,
            error,
        )

    found = {
        query: [one["eventType"] for one in deliveries(as_owner, webhook, query)]
        for query in (
            "",
            "?status=failed",
            "?eventType=tx.signed",
            "?hasError=true",
            "?hasError=false",
            "?limit=1",
            "?offset=1&limit=1",
            "?status=failed&eventType=tx.signed&hasError=true",
            "?status=pending",
            "?eventType=no.such",
        )
    }

    both = ["tx.denied", "tx.signed"]
    assert found == {
        "": [*both, "tx.signed"],
        "?status=failed": both,
        "?eventType=tx.signed": ["tx.signed"] * 2,
        "?hasError=true": both,
        "?hasError=false": ["tx.signed"],
        "?limit=1": ["tx.denied"],
        "?offset=1&limit=1": ["tx.signed"],
        "?status=failed&eventType=tx.signed&hasError=true": ["tx.signed"],
        "?status=pending": [],
        "?eventType=no.such": [],
    }
    counted = as_owner.get(f"/webhooks/{webhook}/deliveries?hasError=true&limit=1")
    assert counted.headers["X-Total-Count"] == "2"


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=x",
        "offset=-1",
        "status=lost",
        "hasError=perhaps",
        "eventType=",
        "eventType=a%20b",
    ],
)
def test_a_bad_filter_is_refused(as_owner: Person, query: str) -> None:
    webhook = endpoint(as_owner, "https://hooks.example.com/")

    answer = as_owner.get(f"/webhooks/{webhook}/deliveries?{query}")

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [query.partition("=")[0]])


async def test_an_export_has_the_same_fields_and_no_formula(
    as_owner: Person, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook = endpoint(as_owner, receiver.url())
    await owner.execute(
        "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, max_attempts) "
        "VALUES ($1, $2, '=HYPERLINK(\"x\")', 'https://secret.example.com', 'failed', 6)",
        as_owner.tenant,
        webhook,
    )

    answer = as_owner.get(f"/webhooks/{webhook}/deliveries/export?status=failed")

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert list(rows[0]) == [*FIELDS, "replayedFromDeliveryId"]
    assert (rows[0]["eventType"], rows[0]["hasError"], rows[0]["nextRetryAt"]) == ('\'=HYPERLINK("x")', "false", "")
    assert "secret.example.com" not in answer.text
    assert as_owner.get(f"/webhooks/{webhook}/deliveries/export?limit=10001").status_code == 400
    assert as_owner.get(f"/webhooks/{webhook}/deliveries/export?limit=10000").status_code == 200


def test_a_test_is_sent_once_and_signed(as_owner: Person, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/test"), events=["tx.denied"])

    asked = as_owner.ok("POST", f"/webhooks/{webhook}/test")

    assert (asked["eventType"], asked["status"], asked["maxAttempts"]) == ("webhook.test", "pending", 1)
    assert over(as_owner, webhook)[0]["status"] == "delivered"
    sent = receiver.at("/200/test")[0]
    assert {"x-service-signature", "webhook-id", "webhook-timestamp", "webhook-signature"} <= set(sent.headers)
    assert set(sent.envelope) == {"id", "event", "tenantId", "agentId", "timestamp", "data"}
    assert (sent.envelope["event"], sent.envelope["tenantId"]) == ("webhook.test", as_owner.tenant)


@pytest.mark.parametrize(
    "kept",
    ["/200/a;b=c?d=e", "/200/a;b", "/200/a?", "/200/a%3Bb//c/../d?e=%20"],
    ids=["parameters", "no-query", "empty-query", "odd"],
)
def test_an_event_is_posted_to_the_very_address_that_was_kept(as_owner: Person, receiver: Receiver, kept: str) -> None:
    webhook = endpoint(as_owner, receiver.url(kept))
    as_owner.ok("POST", f"/webhooks/{webhook}/test")

    assert over(as_owner, webhook)[0]["status"] == "delivered"
    delivery = deliveries(as_owner, webhook)[0]["id"]
    sent = [one for one in receiver.received if one.headers["webhook-id"] == delivery]
    assert [(one.path, one.headers["host"]) for one in sent] == [(kept, f"127.0.0.1:{receiver.server_port}")]


def test_a_test_is_neither_repeated_nor_replayed(as_owner: Person, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url("/500/test"))
    as_owner.ok("POST", f"/webhooks/{webhook}/test")

    failed = over(as_owner, webhook)[0]

    path = f"/webhooks/deliveries/{failed['id']}"
    assert (failed["status"], failed["hasError"], failed["nextRetryAt"]) == ("failed", True, None)
    assert code_of(as_owner.post(f"{path}/retry")) == (409, "retry_budget_used")
    assert code_of(as_owner.post(f"{path}/replay")) == (409, "test_not_replayed")


def test_a_disabled_endpoint_is_not_tested(as_owner: Person, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url())
    as_owner.ok("PUT", f"/webhooks/{webhook}", {"enabled": False})

    assert code_of(as_owner.post(f"/webhooks/{webhook}/test")) == (409, "webhook_disabled")
    assert deliveries(as_owner, webhook) == []


async def test_an_endpoint_is_sent_a_hundred_tests_and_replays_at_most(
    as_owner: Person, agent: Agent, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook, other = (endpoint(as_owner, receiver.url(f"/200/{name}")) for name in ("many", "few"))
    sign(agent)
    replay = f"/webhooks/deliveries/{over(as_owner, webhook)[0]['id']}/replay"
    made = (
        "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, max_attempts, replayed_from, created_at,"
        " next_retry_at) SELECT $1, $2, 'tx.signed', '', 'failed', 6, gen_random_uuid(), service_now() - $4::interval,"
        " service_now() + $5::interval FROM generate_series(1, $3)"
    )
    # Some wait since yesterday, some are of this minute and over.
    await owner.execute(made, as_owner.tenant, webhook, 60, timedelta(days=1), timedelta(days=1))
    await owner.execute(made, as_owner.tenant, webhook, 39, timedelta(0), None)

    hundredth = as_owner.post(f"/webhooks/{webhook}/test")
    refused = [as_owner.post(path) for path in (f"/webhooks/{webhook}/test", replay)]
    elsewhere = as_owner.post(f"/webhooks/{other}/test")
    await owner.execute(
        "UPDATE deliveries SET created_at = created_at - interval '1 day' WHERE endpoint_id = $1", webhook
    )
    later = [as_owner.post(path) for path in (f"/webhooks/{webhook}/test", replay)]

    assert {code_of(answer) for answer in refused} == {(429, "too_many_sent_again")}
    assert refused[0].headers["Retry-After"] == "60"
    assert [answer.status_code for answer in (hundredth, elsewhere, *later)] == [200] * 4


def test_a_retry_does_not_wait_and_counts(as_owner: Person, agent: Agent, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url("/500/retry"), maxRetries=1, retryBackoffMs=86_400_000)
    sign(agent)
    failed = over(as_owner, webhook)[0]
    path = f"/webhooks/deliveries/{failed['id']}/retry"
    assert (failed["attempts"], failed["nextRetryAt"] > failed["createdAt"]) == (1, True)

    asked = as_owner.ok("POST", path)

    assert (asked["id"], asked["status"], asked["attempts"]) == (failed["id"], "failed", 1)
    assert asked["nextRetryAt"] < failed["nextRetryAt"]
    again = eventually(lambda: deliveries(as_owner, webhook)[0], lambda one: one["attempts"] == 2 and one["hasError"])
    eventually(lambda: deliveries(as_owner, webhook)[0]["status"], "failed")
    assert again["id"] == failed["id"]
    assert len({one.headers["webhook-id"] for one in receiver.at("/500/retry")}) == 1
    assert code_of(as_owner.post(path)) == (409, "retry_budget_used")


async def test_only_what_has_failed_is_tried_again(
    as_owner: Person, agent: Agent, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/done"))
    sign(agent)
    done = over(as_owner, webhook)[0]["id"]
    path = f"/webhooks/deliveries/{done}/retry"

    assert code_of(as_owner.post(path)) == (409, "delivery_delivered")
    for status in ("pending", "processing"):
        await set_to(owner, done, status=status)
        assert code_of(as_owner.post(path)) == (409, "delivery_under_way")
    assert code_of(as_owner.post(f"/webhooks/deliveries/{NOBODYS}/retry")) == (404, "delivery_absent")
    # The control: nothing else stands in the way.
    await set_to(owner, done, status="failed")
    assert as_owner.post(path).status_code == 200


def test_a_replay_is_a_new_delivery_of_the_same_event(as_owner: Person, agent: Agent, receiver: Receiver) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/replay"))
    sign(agent)
    first = over(as_owner, webhook)[0]

    replayed = as_owner.ok("POST", f"/webhooks/deliveries/{first['id']}/replay")

    assert list(replayed) == [*FIELDS, "replayedFromDeliveryId"]
    assert replayed["replayedFromDeliveryId"] == first["id"] != replayed["id"]
    assert (replayed["attempts"], replayed["maxAttempts"], replayed["eventType"]) == (0, 6, "tx.signed")
    assert [one["status"] for one in over(as_owner, webhook, 2)] == ["delivered"] * 2
    sent = receiver.at("/200/replay")
    assert sent[0].body == sent[1].body
    assert [one.headers["webhook-id"] for one in sent] == [first["id"], replayed["id"]]
    assert sent[0].headers["webhook-signature"] != sent[1].headers["webhook-signature"]


async def test_a_delivery_under_way_is_not_replayed(
    as_owner: Person, agent: Agent, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/way"))
    sign(agent)
    delivery = over(as_owner, webhook)[0]["id"]
    path = f"/webhooks/deliveries/{delivery}/replay"

    for status in ("pending", "processing"):
        await set_to(owner, delivery, status=status)
        assert code_of(as_owner.post(path)) == (409, "delivery_under_way")
    assert code_of(as_owner.post(f"/webhooks/deliveries/{NOBODYS}/replay")) == (404, "delivery_absent")
    for status in ("failed", "delivered"):
        await set_to(owner, delivery, status=status)
        assert as_owner.post(path).status_code == 200


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"enabled": False}, "webhook_disabled"),
        ({"url": "http://127.0.0.1:9/"}, "webhook_url_changed"),
        ({"events": ["tx.denied"]}, "not_subscribed"),
        (None, "webhook_deleted"),
    ],
    ids=["disabled", "url", "events", "deleted"],
)
def test_an_endpoint_that_is_another_now_gets_no_replay(
    as_owner: Person, agent: Agent, receiver: Receiver, change: dict[str, Any] | None, code: str
) -> None:
    webhook = endpoint(as_owner, receiver.url("/500/other"), retryBackoffMs=86_400_000)
    sign(agent)
    path = f"/webhooks/deliveries/{over(as_owner, webhook)[0]['id']}"
    if change is None:
        as_owner.ok("DELETE", f"/webhooks/{webhook}")
    else:
        as_owner.ok("PUT", f"/webhooks/{webhook}", change)

    assert code_of(as_owner.post(f"{path}/replay")) == (409, code)
    # What somebody no longer wants to hear of may still be tried to the end.
    retried = as_owner.post(f"{path}/retry")
    assert retried.status_code == 200 if code == "not_subscribed" else code_of(retried) == (409, code)


async def test_an_event_that_is_not_kept_any_more_is_not_replayed(
    as_owner: Person, agent: Agent, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook = endpoint(as_owner, receiver.url("/200/old"))
    sign(agent)
    delivery = over(as_owner, webhook)[0]["id"]

    await owner.execute("DELETE FROM events WHERE tenant_id = $1", as_owner.tenant)

    assert code_of(as_owner.post(f"/webhooks/deliveries/{delivery}/replay")) == (409, "event_forgotten")


def test_a_delivery_is_nothing_to_another_tenant(
    service: Service, as_owner: Person, agent: Agent, receiver: Receiver, other_tenant: Tenant
) -> None:
    webhook = endpoint(as_owner, receiver.url("/500/foreign"))
    sign(agent)
    delivery = over(as_owner, webhook)[0]["id"]

    with closing(member(service, other_tenant, "owner", mfa=True)) as stranger:
        answers = [stranger.post(f"/webhooks/deliveries/{delivery}/{act}") for act in ("retry", "replay")]

    assert {code_of(answer) for answer in answers} == {(404, "delivery_absent")}
    assert len(deliveries(as_owner, webhook)) == 1
