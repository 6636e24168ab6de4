"""People are told of what waits: once, in time, of nothing that was decided, and at no address but the sealed one."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.hooked import Hooked, Hooks
from tests.fixtures.people import Person, by_mail, platform_client
from tests.fixtures.server import EVM_CHAIN
from tests.outside.smtp_server import Mailbox

PATH = "/notification-channels"


class Channel:
    """A channel of kind slack whose incoming webhook is a receiver of the test's."""

    def __init__(
        self, hooks: Hooks, does: str = "good", *, server: str = "good", host: str = "localhost", **fields: Any
    ):
        self.hooks, self.url = hooks, hooks.receivers.url(does, server=server, host=host)
        body = {"kind": "slack", "target": self.url, "events": ["waiting", "frozen"], **fields}
        self.id = hooks.owner.ok("POST", PATH, body)["id"]

    @property
    def heard(self) -> list[str]:
        """The texts that arrived."""
        return [one.envelope["blocks"][1]["text"]["text"] for one in self.hooks.receivers.at(self.url)]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages as its owner sees them, newest first."""
        return self.hooks.owner.ok("GET", f"{PATH}/{self.id}/deliveries")  # type: ignore[no-any-return]

    def wait_for(self, status: str) -> list[dict[str, Any]]:
        """The messages that have come to this, as soon as there is one."""
        return eventually(lambda: [one for one in self.messages if one["status"] == status])  # type: ignore[no-any-return]


@pytest.fixture
def asking(hooks: Hooks) -> Hooks:
    """The same tenant, whose agent asks for whatever is above 5."""
    hooks.tenant.ok("PUT", f"/agents/{hooks.agent.id}/policies", [rule("auto-approve-threshold", threshold="5")])
    return hooks


def ask(hooks: Hooks, *values: int) -> None:
    for value in values:
        assert hooks.agent.sign(ADDRESS, value).status_code == 202


def decide(hooks: Hooks, value: int, verb: str = "deny") -> None:
    [item] = [one for one in hooks.tenant.ok("GET", "/approvals") if one["value"] == str(value)]
    hooks.tenant.ok("POST", f"/approvals/{item['id']}/{verb}", {"digest": item["digest"]})


def test_twenty_orders_are_one_message_with_exact_amounts(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking)
    ask(asking, *range(101, 121))

    with hook_world.scheduler():
        room.wait_for("delivered")

    [text] = room.heard
    lines = text.split("\n")
    assert [line.partition(" on chain")[0] for line in lines[:5]] == [
        f"Send {value} wei to {ADDRESS}" for value in range(101, 106)
    ]
    assert lines[5:] == ["and 15 more"]
    assert asking.owner.ok("GET", f"{PATH}/{room.id}")["lastDeliveredAt"] is not None


def test_a_room_with_others_is_told_only_how_much(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking, detail="count")
    ask(asking, 7, 8)

    with hook_world.scheduler():
        room.wait_for("delivered")

    assert room.heard == ["Custody: 2 requests wait"]


def test_nothing_is_sent_of_what_was_decided(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking)
    ask(asking, 7, 8, 9)
    for value in (7, 8):
        decide(asking, value)

    with hook_world.scheduler():
        room.wait_for("delivered")

    assert len(room.heard) == 1
    assert room.heard[0].startswith(f"Send 9 wei to {ADDRESS}")
    assert "\n" not in room.heard[0]


def test_a_channel_of_which_everything_was_decided_hears_nothing(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking)
    ask(asking, 7)
    decide(asking, 7)

    with hook_world.scheduler():
        room.wait_for("dropped")
        asking.tenant.ok("POST", f"/agents/{asking.agent.id}/freeze", {})
        room.wait_for("delivered")

    # What was told is the freeze alone: that nothing was dropped for want of time.
    assert [text.partition(" by ")[0] for text in room.heard] == ["FROZEN"]


async def test_a_target_put_under_another_channel_is_not_dialled(hook_world: Hooked, asking: Hooks) -> None:
    one, other = Channel(asking, events=["waiting"]), Channel(asking, events=["waiting"])
    swap = (
        "UPDATE identity_sealed s SET blob = o.blob FROM identity_sealed o WHERE s.tenant_id = $1 "
        "AND o.tenant_id = $1 AND s.owner = $2 AND o.owner = $3"
    )
    async with owner_of(hook_world.database) as owner:
        await owner.execute(swap, asking.tenant.id, one.id, other.id)
    ask(asking, 7)

    with hook_world.scheduler():
        [failed] = one.wait_for("failed")
        other.wait_for("delivered")

    assert failed["error"] == "sealed_value_tampered"
    # The second one's own value was overwritten by nothing: it opens, and is dialled.
    assert (one.heard, len(other.heard)) == ([], 1)


@pytest.mark.parametrize(
    ("does", "error"), [("redirect", "redirect"), ("status-500", "status"), ("huge", None), ("closing", None)]
)
def test_a_receiver_that_misbehaves_is_named_by_a_word(
    hook_world: Hooked, asking: Hooks, does: str, error: str | None
) -> None:
    room = Channel(asking, does)
    ask(asking, 7)

    with hook_world.scheduler(seconds=6):
        [message] = room.wait_for("failed" if error else "delivered")

    assert (message["error"], message["attempts"], message["maxAttempts"]) == (error, 1, 5)
    assert (message["nextRetryAt"] is not None) == (error is not None)


def test_a_name_that_leads_to_metadata_is_not_dialled(hook_world: Hooked, asking: Hooks) -> None:
    hook_world.names(meta__receiver__test=[["169.254.169.254"]])
    room = Channel(asking, kind="ntfy", host="meta.receiver.test")
    ask(asking, 7)

    with hook_world.scheduler():
        [failed] = room.wait_for("failed")

    assert failed["error"] == "address_blocked"


def test_a_receiver_that_asks_for_time_gets_an_hour_at_most(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking, "busy")
    ask(asking, 7)
    began = datetime.now(UTC)

    with hook_world.scheduler():
        [failed] = room.wait_for("failed")

    wait = datetime.fromisoformat(failed["nextRetryAt"]) - began
    assert timedelta(seconds=3600) <= wait < timedelta(seconds=4100)


def test_a_receiver_that_is_gone_is_disabled_and_the_others_are_told(hook_world: Hooked, asking: Hooks) -> None:
    gone = Channel(asking, "gone")
    # Told of nothing else, so that it need not wait a minute.
    other = Channel(asking, events=["budget"])
    ask(asking, 7)

    with hook_world.scheduler():
        gone.wait_for("failed")
        shown = eventually(lambda: asking.owner.ok("GET", f"{PATH}/{gone.id}"), lambda found: not found["enabled"])
        eventually(lambda: other.heard, lambda found: len(found) == 1)

    assert other.heard == ["A channel for these messages was disabled, for its receiver is gone (by the service)"]
    assert shown["disabledReason"] == "The receiver is gone."


def mailed_owner(hooks: Hooks, mailbox: Mailbox) -> Person:
    """An owner of the tenant who has proven an address."""
    somebody = by_mail(hooks.service, mailbox)
    with platform_client(hooks.service) as platform:
        members = f"/platform/tenants/{hooks.tenant.id}/members"
        platform.ok("POST", members, {"userId": somebody.id, "role": "owner"})
    return somebody


def test_a_thief_who_deletes_every_channel_is_told_of_at_all_of_them(
    hook_world: Hooked, hooks: Hooks, mailbox: Mailbox
) -> None:
    rooms = [Channel(hooks), Channel(hooks)]
    with closing(mailed_owner(hooks, mailbox)) as owner:
        before = mailbox.count(owner.address)
        for room in rooms:
            hooks.owner.ok("DELETE", f"{PATH}/{room.id}")

        with hook_world.scheduler():
            for room in rooms:
                eventually(lambda room=room: room.heard, lambda found: any("deleted (by user:" in one for one in found))
            eventually(lambda: mailbox.count(owner.address), lambda count: count >= before + 2)


async def test_a_deleted_channels_target_is_gone_with_its_last_message(hook_world: Hooked, hooks: Hooks) -> None:
    room = Channel(hooks)
    hooks.owner.ok("DELETE", f"{PATH}/{room.id}")

    with hook_world.scheduler():
        eventually(lambda: room.heard, lambda found: len(found) == 1)

    async with owner_of(hook_world.database) as owner:
        assert await owner.fetchval("SELECT count(*) FROM identity_sealed WHERE owner = $1", room.id) == 0


def test_a_person_who_was_removed_is_not_mailed(hook_world: Hooked, asking: Hooks, mailbox: Mailbox) -> None:
    with closing(mailed_owner(asking, mailbox)) as colleague, platform_client(asking.service) as platform:
        made = asking.owner.ok("POST", PATH, {"kind": "email", "target": colleague.address})
        before = mailbox.count(colleague.address)
        platform.ok("DELETE", f"/platform/tenants/{asking.tenant.id}/members/{colleague.id}")
        ask(asking, 7)

        with hook_world.scheduler():
            path = f"{PATH}/{made['id']}/deliveries"
            [failed] = eventually(lambda: asking.owner.ok("GET", f"{path}?status=failed"))

        assert failed["error"] == "endpoint_away"
        assert mailbox.count(colleague.address) == before


def test_a_mail_says_what_waits_in_text_alone(hook_world: Hooked, asking: Hooks, mailbox: Mailbox) -> None:
    with closing(mailed_owner(asking, mailbox)) as colleague:
        asking.owner.ok("POST", PATH, {"kind": "email", "target": colleague.address, "events": ["waiting"]})
        before = mailbox.count(colleague.address)
        ask(asking, 7)

        with hook_world.scheduler():
            eventually(lambda: mailbox.count(colleague.address), lambda count: count >= before + 2)

        [mail] = [one for one in mailbox.mails() if colleague.address in one.recipients and "Send 7" in one.content]
        assert mail.message["Subject"] == "Custody: 1 request waits"
        assert not mail.message.is_multipart()
        [waiting] = asking.tenant.ok("GET", "/approvals")
        assert f"/approve#{asking.tenant.id}/{waiting['id']}" in mail.text


def test_quiet_hours_hold_what_can_wait_and_nothing_else(hook_world: Hooked, asking: Hooks) -> None:
    now = datetime.now(UTC)
    end = (now + timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    hours = {"start": f"{now - timedelta(hours=1):%H:%M}", "end": f"{end:%H:%M}", "timezone": "UTC"}
    room = Channel(asking, quietHours=hours)
    ask(asking, 7)

    with hook_world.scheduler():
        held = room.wait_for("pending")
        asking.tenant.ok("POST", f"/agents/{asking.agent.id}/freeze", {})
        room.wait_for("delivered")

    due = [datetime.fromisoformat(one["nextRetryAt"]) for one in held]
    assert min(abs(one - end) for one in due) <= timedelta(seconds=3)
    assert [text.partition(" by ")[0] for text in room.heard] == ["FROZEN"]


def test_a_second_channel_is_told_only_of_what_still_waits_later(hook_world: Hooked, asking: Hooks) -> None:
    now = datetime.now(UTC)
    room, later = Channel(asking, events=["waiting"]), Channel(asking, events=["waiting"], afterMinutes=15)
    ask(asking, 7)

    with hook_world.scheduler():
        room.wait_for("delivered")
        held = [one for one in later.messages if one["purpose"] == "events"]

    assert [datetime.fromisoformat(one["nextRetryAt"]) >= now + timedelta(minutes=15) for one in held] == [True]
    assert [text for text in later.heard if text.startswith("Send")] == []


def test_a_test_arrives_and_says_that_it_is_one(hook_world: Hooked, hooks: Hooks) -> None:
    room = Channel(hooks)
    hooks.owner.ok("POST", f"{PATH}/{room.id}/test")

    with hook_world.scheduler():
        [message] = room.wait_for("delivered")

    assert (message["purpose"], message["attempts"]) == ("test", 1)
    assert room.heard == ["This is a test. You are told here when something waits."]
    [request] = hooks.receivers.at(room.url)
    assert request.headers["x-notice-id"] == message["id"]


async def test_a_failed_message_is_sent_again_by_hand_without_what_was_decided(
    hook_world: Hooked, asking: Hooks
) -> None:
    room = Channel(asking, "status-500")
    ask(asking, 7, 8)
    with hook_world.scheduler():
        [failed] = room.wait_for("failed")
    decide(asking, 7)
    room.url = asking.receivers.url("good")
    asking.owner.ok("PATCH", f"{PATH}/{room.id}", {"target": room.url})
    async with owner_of(hook_world.database) as owner:
        # A channel is sent to once a minute: the minute is over.
        await owner.execute("UPDATE notification_channels SET taken_at = NULL WHERE id = $1", room.id)

    again = asking.owner.ok("POST", f"{PATH}/deliveries/{failed['id']}/retry")
    with hook_world.scheduler():
        [delivered] = room.wait_for("delivered")

    assert (again["id"], again["status"], again["attempts"]) == (failed["id"], "failed", 1)
    assert (delivered["id"], delivered["attempts"]) == (failed["id"], 2)
    assert [text.partition(" on chain")[0] for text in room.heard] == [f"Send 8 wei to {ADDRESS}"]


async def test_a_message_that_a_killed_scheduler_sent_comes_twice_at_most_with_one_tag(
    hook_world: Hooked, asking: Hooks
) -> None:
    room = Channel(asking, "held")
    ask(asking, 7)
    with hook_world.scheduler() as first:
        eventually(lambda: asking.receivers.at(room.url))
        first.kill()
    [claimed] = room.messages
    asking.receivers.release(room.url)
    async with owner_of(hook_world.database) as owner:
        # The claim and the channel's minute are over.
        await owner.execute("UPDATE notices SET next_retry_at = now() WHERE id = $1", claimed["id"])
        await owner.execute("UPDATE notification_channels SET taken_at = NULL WHERE id = $1", room.id)

    with hook_world.scheduler():
        [delivered] = room.wait_for("delivered")

    assert (claimed["status"], delivered["id"], delivered["attempts"]) == ("processing", claimed["id"], 2)
    assert [one.headers["x-notice-id"] for one in asking.receivers.at(room.url)] == [claimed["id"]] * 2


async def test_two_thousand_events_are_one_message(hook_world: Hooked, hooks: Hooks) -> None:
    now = datetime.now(UTC)
    start, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (-1, 2))
    hours = {"start": start, "end": end, "timezone": "UTC"}
    room = Channel(hooks, events=["budget"], quietHours=hours)
    happen = (
        "INSERT INTO outbox (tenant_id, event, agent_id, data, created_at) SELECT $1, 'spend.threshold', $2, "
        "json_build_object('window', 'day', 'asset', 'evm:native', 'spent', n::text, 'limit', '2000', 'percent', 80, "
        "'txId', gen_random_uuid())::text, now() FROM generate_series(1, 2000) n"
    )
    async with owner_of(hook_world.database) as owner:
        await owner.execute(happen, hooks.tenant.id, hooks.agent.id)
        with hook_world.scheduler():
            left = "SELECT count(*) FROM outbox WHERE tenant_id = $1"
            await soon(lambda: owner.fetchval(left, hooks.tenant.id), 0)
            # The night is over.
            await owner.execute("UPDATE notices SET next_retry_at = now() WHERE channel_id = $1", room.id)
            await asyncio.to_thread(room.wait_for, "delivered")

    [text] = room.heard
    assert text.startswith("80 % of a limit is used: 1 wei of 2000 wei in a day (agent ")
    assert text.endswith("\nand 1,995 more")


async def test_a_request_is_told_again_at_three_quarters_of_its_life(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking, events=["expiring"])
    ask(asking, 7, 8)
    [item] = [one for one in asking.tenant.ok("GET", "/approvals") if one["value"] == "7"]
    async with owner_of(hook_world.database) as owner:
        await owner.execute(
            "UPDATE approvals SET requested_at = now() - interval '3 hours', expires_at = now() + interval '1 hour' "
            "WHERE tenant_id = $1 AND id = $2",
            asking.tenant.id,
            item["id"],
        )

    with hook_world.scheduler():
        await asyncio.to_thread(room.wait_for, "delivered")

    [text] = room.heard
    assert text.startswith(f"Expires soon: Send 7 wei to {ADDRESS}")
    # The other one has no end.
    assert "\n" not in text


def test_an_intent_that_waits_is_told_and_nothing_of_what_it_says(hook_world: Hooked, asking: Hooks) -> None:
    room = Channel(asking)
    asking.owner.ok(
        "POST",
        "/intents",
        {"intentType": "rpc", "payload": {"method": "eth_chainId", "chainId": EVM_CHAIN}},
    )

    with hook_world.scheduler():
        room.wait_for("delivered")

    assert room.heard == ["An intent (rpc) waits"]
