"""A browser is told of what waits: sealed to it, signed by its own key, and read by others' code."""

import time
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.hooked import Hooked, Hooks
from tests.fixtures.people import member
from tests.outside.push_browser import PushBrowser, claims

PATH = "/user/me/push-subscriptions"


class Device:
    """A browser of the owner's whose push service is a receiver of the test's."""

    def __init__(self, hooks: Hooks, does: str = "good", person: Any = None, **fields: Any) -> None:
        self.hooks, self.person, self.browser = hooks, person or hooks.owner, PushBrowser()
        self.url = hooks.receivers.url(does)
        body = {"endpoint": self.url, **self.browser.keys, "events": ["waiting"], **fields}
        self.id = self.person.ok("POST", PATH, body)["id"]

    @property
    def heard(self) -> list[dict[str, Any]]:
        """The pushes that arrived, opened."""
        return [self.browser.open(one.body) for one in self.hooks.receivers.at(self.url)]

    def wait(self, count: int = 1) -> list[dict[str, Any]]:
        """The same, as soon as there are so many."""
        return eventually(lambda: self.heard, lambda found: len(found) >= count)  # type: ignore[no-any-return]


@pytest.fixture
def asking(hooks: Hooks) -> Hooks:
    """The same tenant, whose agent asks for whatever is above 5."""
    hooks.tenant.ok("PUT", f"/agents/{hooks.agent.id}/policies", [rule("auto-approve-threshold", threshold="5")])
    return hooks


def ask(hooks: Hooks, *values: int) -> list[str]:
    return [hooks.agent.sign(ADDRESS, value).json()["data"]["approvalId"] for value in values]


def deny(hooks: Hooks, value: int) -> None:
    [item] = [one for one in hooks.tenant.ok("GET", "/approvals") if one["value"] == str(value)]
    hooks.tenant.ok("POST", f"/approvals/{item['id']}/deny", {"digest": item["digest"]})


def test_a_push_names_the_item_and_can_be_read_by_the_browser_alone(hook_world: Hooked, asking: Hooks) -> None:
    device = Device(asking)
    [approval] = ask(asking, 7)

    with hook_world.scheduler():
        [said] = device.wait()

    [request] = asking.receivers.at(device.url)
    assert {name: said[name] for name in ("title", "tenant", "approval")} == {
        "title": "Custody: 1 request waits",
        "tenant": asking.tenant.id,
        "approval": approval,
    }
    assert said["text"].startswith(f"Send 7 wei to {ADDRESS}")
    assert sorted(said) == ["approval", "tenant", "text", "title"]
    assert ADDRESS.encode() not in request.body
    assert asking.tenant.id not in str(request.headers)
    sealed = {name: request.headers[name] for name in ("content-encoding", "ttl", "urgency")}
    assert sealed == {"content-encoding": "aes128gcm", "ttl": "3600", "urgency": "normal"}


def test_a_push_service_can_tell_who_sends(hook_world: Hooked, asking: Hooks) -> None:
    device = Device(asking)
    ask(asking, 7)

    with hook_world.scheduler():
        device.wait()

    [request] = asking.receivers.at(device.url)
    authorization = request.headers["authorization"]
    said = claims(authorization)
    assert device.browser.is_sender(authorization)
    assert not PushBrowser().is_sender(authorization)
    assert said["aud"] == "/".join(device.url.split("/")[:3])
    assert said["sub"].startswith("http")
    assert time.time() < said["exp"] < time.time() + 24 * 3600


def test_two_devices_have_nothing_in_common(hook_world: Hooked, asking: Hooks) -> None:
    one, other = Device(asking), Device(asking)
    ask(asking, 7)

    with hook_world.scheduler():
        one.wait()
        # Of the other one it was told, too: that is in the same message.
        other.wait()

    requests = [asking.receivers.at(device.url)[0] for device in (one, other)]
    assert requests[0].body != requests[1].body
    # All that is seen on the way has one length.
    assert len({len(request.body) for request in requests}) == 1
    assert [one.browser.is_sender(request.headers["authorization"]) for request in requests] == [True, False]


def test_a_push_leaves_out_what_was_decided(hook_world: Hooked, asking: Hooks) -> None:
    device = Device(asking)
    _, left = ask(asking, 7, 8)
    deny(asking, 7)

    with hook_world.scheduler():
        [said] = device.wait()

    assert said["approval"] == left
    assert said["text"].startswith("Send 8 wei")
    assert "\n" not in said["text"]


def test_a_push_of_several_items_names_none(hook_world: Hooked, asking: Hooks) -> None:
    device = Device(asking, detail="count")
    ask(asking, 7, 8)

    with hook_world.scheduler():
        [said] = device.wait()

    assert (said["title"], said["tenant"]) == ("Custody: 2 requests wait", asking.tenant.id)
    assert "approval" not in said


@pytest.mark.parametrize("does", ["gone", "status-404"])
def test_a_browser_that_is_gone_is_deleted_with_its_keys(hook_world: Hooked, asking: Hooks, does: str) -> None:
    Device(asking, does)
    other = Device(asking)
    ask(asking, 7)

    with hook_world.scheduler():
        left = eventually(lambda: asking.owner.ok("GET", PATH), lambda found: len(found) == 1)

    assert [one["id"] for one in left] == [other.id]


@pytest.mark.parametrize("does", ["status-403", "status-500", "redirect"])
def test_a_push_service_that_refuses_deletes_nothing(hook_world: Hooked, asking: Hooks, does: str) -> None:
    device, other = Device(asking, does), Device(asking)
    ask(asking, 7)

    with hook_world.scheduler():
        eventually(lambda: asking.receivers.at(device.url))
        other.wait()

    assert device.id in {one["id"] for one in asking.owner.ok("GET", PATH)}


def test_a_browser_of_somebody_who_left_hears_nothing(hook_world: Hooked, asking: Hooks) -> None:
    stays = Device(asking)
    with closing(member(asking.service, asking.tenant, "owner", mfa=True)) as person:
        leaves = Device(asking, person=person)
        asking.owner.ok("DELETE", f"/tenants/{asking.tenant.id}/members/{person.id}")
    ask(asking, 7)

    with hook_world.scheduler():
        stays.wait()

    assert leaves.heard == []


def test_a_deleted_browser_is_told_so_a_last_time(hook_world: Hooked, hooks: Hooks) -> None:
    device = Device(hooks)
    hooks.owner.ok("DELETE", f"{PATH}/{device.id}")

    with hook_world.scheduler():
        [said] = device.wait()

    assert said["text"].startswith("A webpush channel for these messages was deleted (by user:")
    assert hooks.owner.ok("GET", PATH) == []
