"""`custody channels`: who is told, and what was sent to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.people import Person
from tests.fixtures.tenant_commands import Desk
from tests.routes.webhooks.receivers import Receiver, running_receiver


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def target_file(folder: Path, url: str) -> str:
    file = folder / f"{len(list(folder.iterdir()))}.url"
    file.write_text(f"{url}\n")
    return str(file)


def test_a_channel_is_made_changed_listed_and_deleted(
    owner_desk: Desk, as_owner: Person, receiver: Receiver, tmp_path: Path
) -> None:
    url = receiver.url("/200/a-secret-topic")
    asked = ("--events", "waiting, frozen", "--quiet", "22:00-07:00@Europe/Berlin")
    made = owner_desk.ok("channels", "add", "ntfy", "--target-file", target_file(tmp_path, url), *asked)
    changed = owner_desk.ok("channels", "change", made["id"], "--after-minutes", "15", "--disabled")
    listed = owner_desk.run("channels", "list")
    deleted = owner_desk.ok("channels", "delete", made["id"], "--yes")

    assert (made["kind"], made["events"], made["enabled"]) == ("ntfy", ["waiting", "frozen"], True)
    assert made["quietHours"] == {"start": "22:00", "end": "07:00", "timezone": "Europe/Berlin"}
    assert changed == {**made, "afterMinutes": 15, "enabled": False}
    assert listed.said.startswith("ntfy\t")
    assert "secret" not in listed.said
    assert deleted == {"deleted": made["id"]}
    assert as_owner.ok("GET", "/notification-channels") == []


def test_a_test_is_waited_for_and_a_failed_one_is_listed_and_sent_again(
    owner_desk: Desk, receiver: Receiver, tmp_path: Path
) -> None:
    def make(path: str) -> str:
        file = target_file(tmp_path, receiver.url(path))
        return str(owner_desk.ok("channels", "add", "ntfy", "--target-file", file)["id"])

    taken = owner_desk.ok("channels", "test", make("/200/told"))
    # Made only now: the first one is told of it, and of nothing else for a minute.
    bad = make("/500/told")
    refused = owner_desk.run("channels", "test", bad)
    [failed] = owner_desk.ok("channels", "deliveries", bad, "--status", "failed")
    again = owner_desk.ok("channels", "retry", failed["id"])

    assert taken["status"] == "delivered"
    assert [one.body for one in receiver.at("/200/told")] == [
        b"This is a test. You are told here when something waits."
    ]
    assert (refused.status, refused.said.endswith(": failed: status.\n")) == (1, True)
    assert (failed["error"], again["id"], again["maxAttempts"]) == ("status", failed["id"], 2)


def test_hours_that_are_no_hours_are_refused_before_anything_is_sent(owner_desk: Desk) -> None:
    wrong = owner_desk.run("channels", "add", "email", "--to", "a@example.com", "--quiet", "at night")

    assert wrong.status == 2
    assert "22:00-07:00@Europe/Berlin" in wrong.complained
