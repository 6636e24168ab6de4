"""Notification channels: what may be one, who may make one, and that nobody reads where it leads."""

from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.each import each
from tests.fixtures.people import Person, by_mail, member
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.routes.tenants.makers import as_app, keep_client, keep_secret

PATH = "/notification-channels"
SECRET = "https://hooks.slack.com/services/T000/B000/abcdefghijklmnop"
SLACK = {"kind": "slack", "target": SECRET}


def refusal(person: Client, body: dict[str, Any]) -> tuple[int, str]:
    answer = person.post(PATH, json=body)
    return answer.status_code, answer.json()["data"]["code"]


def test_a_channel_is_shown_by_its_host_and_last_four_and_never_by_its_target(as_owner: Person) -> None:
    made = as_owner.ok("POST", PATH, {**SLACK, "description": "team room", "events": ["rules", "waiting"]})

    assert made == {
        "id": made["id"],
        "tenantId": as_owner.tenant,
        "kind": "slack",
        "host": "hooks.slack.com",
        "lastFour": "mnop",
        "events": ["waiting", "rules"],
        "detail": "words",
        "afterMinutes": 0,
        "quietHours": None,
        "description": "team room",
        "enabled": True,
        "disabledReason": None,
        "createdAt": made["createdAt"],
        "lastDeliveredAt": None,
    }
    assert as_owner.ok("GET", PATH) == [made]
    assert as_owner.ok("GET", f"{PATH}/{made['id']}") == made
    log = as_owner.ok("GET", "/audit/events?action=channel.created")["data"]
    assert "abcdefghijkl" not in str([made, log, as_owner.ok("GET", f"{PATH}/{made['id']}/deliveries")])
    assert ([entry["action"] for entry in log], made["id"] in str(log)) == (["channel.created"], True)


def test_a_change_keeps_what_is_left_out_and_a_new_target_needs_its_token_again(as_owner: Person) -> None:
    quiet = {"start": "22:00", "end": "07:00", "timezone": "Europe/Berlin"}
    made = as_owner.ok("POST", PATH, {"kind": "ntfy", "target": "https://ntfy.sh/a-long-secret-topic", "token": "tk_1"})

    changed = as_owner.ok("PATCH", f"{PATH}/{made['id']}", {"afterMinutes": 15, "quietHours": quiet})
    moved = as_owner.ok("PATCH", f"{PATH}/{made['id']}", {"target": "https://ntfy.example.com/another-secret-topic"})
    refused = as_owner.patch(f"{PATH}/{made['id']}", json={"token": "tk_2"})
    off = as_owner.ok("PATCH", f"{PATH}/{made['id']}", {"quietHours": None, "enabled": False})

    assert changed == {**made, "afterMinutes": 15, "quietHours": quiet}
    assert moved == {**changed, "host": "ntfy.example.com", "lastFour": "opic"}
    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_channel_target")
    assert off == {**moved, "quietHours": None, "enabled": False}


def test_a_deleted_channel_is_gone(as_owner: Person) -> None:
    made = as_owner.ok("POST", PATH, SLACK)

    assert as_owner.ok("DELETE", f"{PATH}/{made['id']}") == {"deleted": made["id"]}

    assert as_owner.ok("GET", PATH) == []
    path = f"{PATH}/{made['id']}"
    again = [
        as_owner.get(path),
        as_owner.delete(path),
        as_owner.post(f"{path}/test"),
        as_owner.get(f"{path}/deliveries"),
    ]
    assert {(one.status_code, one.json()["data"]["code"]) for one in again} == {(404, "channel_absent")}


@each(
    "target",
    [
        "https://hooks.slack.com.evil.example/services/T/B/x",
        "https://hooks.slack.com./services/T/B/x",
        "https://hooks.slack.com:8443/services/T/B/x",
        "https://hooks.slack.com/other/T/B/x",
        "https://evil.example/services/T/B/x",
        "http://hooks.slack.com/services/T/B/x",
        "https://user@hooks.slack.com/services/T/B/x",
        "ftp://hooks.slack.com/services/T/B/x",
        "https://hooks.slack.com/services/T/B/x#y",
    ],
)
def test_a_slack_channel_leads_to_slack_alone(as_owner: Person, target: str) -> None:
    assert refusal(as_owner, {"kind": "slack", "target": target}) == (400, "bad_channel_target")


BOT = "https://api.telegram.org/bot123456:" + "a" * 35
LOGIC = "https://prod-12.westeurope.logic.azure.com"
ALERTS = "https://events.pagerduty.com/v2/enqueue"


@each(
    ("kind", "target"),
    [
        ("telegram", f"{BOT}/sendMessage?chat_id=-1001234567890"),
        ("telegram", f"{BOT}/sendMessage?chat_id=@some_room&message_thread_id=7"),
        ("teams", f"{LOGIC}:443/workflows/f00/triggers/manual/paths/invoke?sp=%2Ftriggers&sig=abcd"),
        ("teams", "https://0a.1b.environment.api.powerplatform.com:443/powerautomate/automations/direct?sig=abcd"),
        ("teams", "https://acme.webhook.office.com/webhookb2/0a1b2c3d-abcd"),
    ],
)
def test_a_bot_or_workflow_is_taken_as_its_service_shows_it(as_owner: Person, kind: str, target: str) -> None:
    assert as_owner.ok("POST", PATH, {"kind": kind, "target": target})["lastFour"] == target[-4:]


def test_an_alert_needs_its_routing_key_and_shows_the_end_of_it(as_owner: Person) -> None:
    body = {"kind": "pagerduty", "target": ALERTS}

    refused = refusal(as_owner, body)
    made = as_owner.ok("POST", PATH, {**body, "token": "0123456789abcdef0123456789abcdef"})

    assert refused == (400, "bad_channel_target")
    assert (made["host"], made["lastFour"]) == ("events.pagerduty.com", "cdef")


@each(
    ("kind", "target"),
    [
        ("telegram", f"{BOT}/sendMessage"),
        ("telegram", f"{BOT}/sendMessage?chat_id=1&parse_mode=HTML"),
        ("telegram", f"{BOT}/sendMessage?chat_id=1&chat_id=2"),
        ("telegram", f"{BOT}/deleteWebhook?chat_id=1"),
        ("telegram", "https://api.telegram.org/botx/sendMessage?chat_id=1"),
        ("telegram", f"{BOT.replace('.org', '.org.evil.example')}/sendMessage?chat_id=1"),
        ("teams", "https://logic.azure.com/workflows/x"),
        ("teams", "https://evil-logic.azure.com/workflows/x"),
        ("teams", f"{LOGIC}.evil.example/workflows/x"),
        ("teams", f"{LOGIC}:8443/workflows/x"),
        ("teams", f"{LOGIC}/"),
        ("pagerduty", "https://events.pagerduty.com/v2/enqueue/"),
        ("pagerduty", "https://pagerduty.com/v2/enqueue"),
    ],
)
def test_a_bot_workflow_or_alert_leads_to_its_service_alone(as_owner: Person, kind: str, target: str) -> None:
    body = {"kind": kind, "target": target} | ({"token": "k" * 32} if kind == "pagerduty" else {})

    assert refusal(as_owner, body) == (400, "bad_channel_target")


@each(
    "target",
    [
        "https://169.254.169.254/topic",
        "https://10.0.0.7/topic",
        "https://[::ffff:10.0.0.1]/topic",
        "https://0x7f000001/topic",
        "https://2130706433/topic",
        "https://ntfy.internal/topic",
        "https://someone@ntfy.sh/topic",
        "ftp://ntfy.sh/topic",
        "ntfy.sh/topic",
    ],
)
def test_a_topic_in_a_private_network_is_refused(as_owner: Person, target: str) -> None:
    assert refusal(as_owner, {"kind": "ntfy", "target": target}) == (400, "bad_channel_target")


@each(
    "address",
    ["nobody@example.com", "a@b.c\r\nBcc: x@y.z", "owner@example.com, x@y.z", "no address", "=?utf-8?q?=76?=@b.ch"],
)
def test_an_address_that_nobody_of_the_team_has_proven_is_refused(as_owner: Person, address: str) -> None:
    assert refusal(as_owner, {"kind": "email", "target": address}) == (400, "bad_channel_target")


def test_mail_goes_to_who_proved_their_address_and_belongs_to_the_team(
    service: Service, tenant: Tenant, as_owner: Person, as_platform: Client, mailbox: Mailbox
) -> None:
    with closing(by_mail(service, mailbox)) as colleague:
        body = {"kind": "email", "target": colleague.address}
        members = f"/platform/tenants/{tenant.id}/members"

        stranger = refusal(as_owner, body)
        as_platform.ok("POST", members, {"userId": colleague.id, "role": "member"})
        end_user = refusal(as_owner, body)
        as_platform.ok("POST", members, {"userId": colleague.id, "role": "viewer"})
        made = as_owner.ok("POST", PATH, body)

    assert stranger == end_user == (400, "bad_channel_target")
    assert (made["host"], made["lastFour"]) == ("example.com", colleague.address.partition("@")[0][-4:])


@each(
    "fields",
    [
        {"kind": "telegraph"},
        {"events": []},
        {"events": ["everything"]},
        {"afterMinutes": 1441},
        {"detail": "all"},
        {"token": "for-slack"},
        {"quietHours": {"start": "22:00", "end": "22:00", "timezone": "UTC"}},
        {"quietHours": {"start": "22:00", "end": "07:00", "timezone": "Mars/Base"}},
        {"quietHours": {"start": "24:00", "end": "07:00", "timezone": "UTC"}},
        {"more": 1},
    ],
)
def test_a_channel_that_makes_no_sense_is_refused(as_owner: Person, fields: dict[str, Any]) -> None:
    assert as_owner.post(PATH, json={**SLACK, **fields}).status_code == 400


@pytest.mark.parametrize("role", ["developer", "billing", "viewer", "member"])
def test_no_other_role_makes_or_sees_a_channel(service: Service, tenant: Tenant, role: str) -> None:
    with closing(member(service, tenant, role, mfa=True)) as somebody:
        answers = [somebody.post(PATH, json=SLACK), somebody.get(PATH)]

    assert {(one.status_code, one.json()["data"]["code"]) for one in answers} == {(403, "wrong_role")}


def test_no_program_and_nobody_without_a_recent_factor_makes_one(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    keep_client(as_owner)
    secret = keep_secret(as_owner)
    agent = tenant.agent()

    with as_app(as_owner, secret["appId"], secret["appSecret"]) as app:
        programs = {one.post(PATH, json=SLACK).status_code for one in (tenant, agent, app)}
    with closing(member(service, tenant, "admin")) as unproven:
        codes = {one.json()["data"]["code"] for one in (unproven.post(PATH, json=SLACK), unproven.get(PATH))}

    assert programs == {403}
    assert codes == {"mfa_required"}


def test_a_tenant_has_twenty_channels_and_no_more(as_owner: Person) -> None:
    for _ in range(20):
        as_owner.ok("POST", PATH, SLACK)

    assert refusal(as_owner, SLACK) == (409, "quota_exceeded")


def test_a_channel_is_tested_once_a_minute_and_not_while_it_is_off(as_owner: Person) -> None:
    path = f"{PATH}/{as_owner.ok('POST', PATH, SLACK)['id']}"

    made = as_owner.ok("POST", f"{path}/test")
    again = as_owner.post(f"{path}/test")
    as_owner.ok("PATCH", path, {"enabled": False})
    off = as_owner.post(f"{path}/test")

    assert (made["purpose"], made["maxAttempts"]) == ("test", 1)
    assert (again.status_code, again.json()["data"]["code"]) == (429, "channel_tested")
    assert (off.status_code, off.json()["data"]["code"]) == (409, "channel_disabled")
    # A scheduler may have tried it meanwhile.
    assert [one["id"] for one in as_owner.ok("GET", f"{path}/deliveries")] == [made["id"]]
