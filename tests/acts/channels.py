"""Acts on notification channels and what is sent on them."""

from typing import TYPE_CHECKING

import msgspec

from tests.acts.act import ABSENT, ADMINS, PUBLIC, SESSION, Act, Journey
from tests.fixtures.eventually import eventually
from tests.outside.push_browser import PushBrowser

if TYPE_CHECKING:
    from tests.table.world import World

PATH, BROWSERS = "/notification-channels", "/user/me/push-subscriptions"
_NOWHERE = {"target": "nobody@example.com", "token": None, "host": "example.com", "last_four": ""}
NOBODY_LISTENS = "http://127.0.0.1:9/a-topic-of-nobody"


def _new_channel(world: "World") -> Journey:
    # A tenant has few. What is off is told nothing when it goes, so that no message is under way afterwards.
    for channel in world.owner.ok("GET", PATH):
        world.owner.ok("PATCH", f"{PATH}/{channel['id']}", {"enabled": False})
        world.owner.ok("DELETE", f"{PATH}/{channel['id']}")
    return Journey(world.owner, body={"kind": "ntfy", "target": NOBODY_LISTENS})


def _channel(world: "World") -> Journey:
    made = world.owner.ok("POST", PATH, _new_channel(world).body)
    return Journey(world.owner, {"channel_id": made["id"]})


def _told_channel(world: "World") -> Journey:
    journey = _channel(world)
    # It is told of another one, and then of nothing for a minute: the test that is made of it waits, and is shown so.
    world.owner.ok("POST", PATH, {"kind": "ntfy", "target": NOBODY_LISTENS})
    path = f"{PATH}/{journey.path['channel_id']}/deliveries"
    eventually(lambda: [one for one in world.owner.ok("GET", path) if one["attempts"] > 0])
    return journey


def _change_channel(world: "World") -> Journey:
    return msgspec.structs.replace(_channel(world), body={"afterMinutes": 3})


def _failed_notice(world: "World") -> Journey:
    path = f"{PATH}/{_channel(world).path['channel_id']}"
    world.owner.ok("POST", f"{path}/test")
    # An attempt whose outcome is lost has failed when the channel's minute is over, which is all that others wait.
    [failed] = eventually(lambda: world.owner.ok("GET", f"{path}/deliveries?status=failed"), seconds=180)
    return Journey(world.owner, {"notice_id": failed["id"]})


def _new_browser(world: "World") -> Journey:
    # A person has few.
    for browser in world.owner.ok("GET", BROWSERS):
        world.owner.ok("DELETE", f"{BROWSERS}/{browser['id']}")
    return Journey(world.owner, body={"endpoint": NOBODY_LISTENS, **PushBrowser().keys})


def _browser(world: "World") -> Journey:
    made = world.owner.ok("POST", BROWSERS, _new_browser(world).body)
    return Journey(world.owner, {"channel_id": made["id"]})


def _act(path: str, command: str | None = None, **fields: object) -> Act:
    return Act(path, SESSION, ADMINS, "webhooks", command=command, **fields)  # type: ignore[arg-type]


ACTS = (
    _act(
        "POST /notification-channels",
        "CreateChannel",
        nothing={"kind": "email", "led": _NOWHERE, "fields": "{}"},
        journey=_new_channel,
    ),
    _act("GET /notification-channels"),
    _act("GET /notification-channels/{id}", journey=_channel),
    _act(
        "PATCH /notification-channels/{id}",
        "ChangeChannel",
        nothing={"channel": ABSENT, "led": None, "fields": "{}"},
        journey=_change_channel,
    ),
    _act("DELETE /notification-channels/{id}", "DeleteChannel", nothing={"channel": ABSENT}, journey=_channel),
    _act("POST /notification-channels/{id}/test", "TestChannel", nothing={"channel": ABSENT}, journey=_told_channel),
    _act("GET /notification-channels/{id}/deliveries", journey=_channel),
    _act(
        "POST /notification-channels/deliveries/{id}/retry",
        "RetryNotice",
        nothing={"notice": ABSENT},
        journey=_failed_notice,
    ),
    _act("POST /user/me/push-subscriptions", "CreateChannel", journey=_new_browser),
    _act("GET /user/me/push-subscriptions"),
    _act("DELETE /user/me/push-subscriptions/{id}", "DeleteChannel", journey=_browser),
    Act((), PUBLIC, command="OpenChannel", nothing={"tenant": "t", "notice": ABSENT}, senders="scheduler"),
)
