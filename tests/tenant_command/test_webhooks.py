"""`custody webhooks`: endpoints of the tenant, and what was sent to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.fixtures.callers import Agent
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.tenant_commands import Desk
from tests.outside.terminal import terminal
from tests.routes.webhooks.receivers import Receiver, running_receiver
from tests.tenant_command.test_account import next_code


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def test_an_endpoint_is_made_changed_listed_and_deleted(owner_desk: Desk, as_owner: Person, receiver: Receiver) -> None:
    url, elsewhere = receiver.url("/200/a"), receiver.url("/200/b")
    made = owner_desk.ok("webhooks", "add", url, "--events", "tx.signed, tx.failed", "--max-retries", "2")
    changed = owner_desk.ok("webhooks", "change", url, "--to", elsewhere, "--all-events", "--disabled")
    listed = owner_desk.run("webhooks", "list")
    shown = owner_desk.ok("webhooks", "list")
    deleted = owner_desk.ok("webhooks", "delete", elsewhere, "--yes")

    assert (made["events"], made["maxRetries"], made["enabled"]) == (["tx.signed", "tx.failed"], 2, True)
    assert made["secret"].startswith("whsec_")
    assert (changed["url"], changed["enabled"]) == (elsewhere, False)
    assert len(changed["events"]) > 2
    assert listed.said.startswith(f"{elsewhere}\tdisabled\t")
    assert shown == [changed]
    assert made["secret"] not in listed.said
    assert deleted == {"deleted": made["id"]}
    assert as_owner.ok("GET", "/webhooks") == []


def test_a_test_is_waited_for_and_its_outcome_is_the_status(owner_desk: Desk, receiver: Receiver) -> None:
    good, bad = receiver.url("/200/test"), receiver.url("/500/test")
    made = {url: owner_desk.ok("webhooks", "add", url) for url in (good, bad)}
    taken = owner_desk.ok("webhooks", "test", good)
    refused = owner_desk.run("webhooks", "test", bad)

    [delivery] = receiver.at("/200/test")
    assert taken["status"] == "delivered"
    assert delivery.headers["webhook-id"] == taken["id"]
    assert Webhook(made[good]["secret"]).verify(delivery.body, delivery.headers)["event"] == "webhook.test"
    assert (refused.status, refused.complained) == (1, "")
    assert refused.said.endswith(": failed permanently.\n")


def test_a_failed_delivery_is_listed_retried_and_replayed(owner_desk: Desk, receiver: Receiver, agent: Agent) -> None:
    url = receiver.url("/500/retry")
    made = owner_desk.ok("webhooks", "add", url, "--events", "tx.signed", "--retry-backoff-ms", "86400000")
    assert agent.sign().status_code == 200
    [failed] = eventually(lambda: owner_desk.ok("webhooks", "deliveries", url, "--status", "failed"), len)
    listed = owner_desk.run("webhooks", "deliveries", made["id"], "--event", "tx.signed", "--limit", "1")
    retried = owner_desk.ok("webhooks", "retry", failed["id"])
    eventually(lambda: len(receiver.at("/500/retry")), 2)
    replayed = owner_desk.ok("webhooks", "retry", failed["id"], "--replay")

    assert "\ttx.signed\tfailed, retried in " in listed.said
    assert listed.said.endswith(f"\t1 of 6\t{failed['id']}\n")
    assert retried["id"] == failed["id"]
    assert replayed["replayedFromDeliveryId"] == failed["id"]


def test_a_new_secret_is_shown_once_and_says_how_long_the_former_one_signs(
    owner_desk: Desk, receiver: Receiver
) -> None:
    url = receiver.url("/200/roll")
    made = owner_desk.ok("webhooks", "add", url)
    rolled = owner_desk.ok("webhooks", "roll-secret", url, "--overlap-seconds", "60")
    alone = owner_desk.run("webhooks", "roll-secret", made["id"], "--overlap-seconds", "0")

    assert rolled["secret"] != made["secret"]
    assert len(rolled["formerSecretsEnd"]) == 1
    assert alone.said.endswith("No former one signs any more.\n")


def test_a_key_is_told_that_webhooks_are_for_people(desk: Desk) -> None:
    ended = desk.run("webhooks", "list", "--json")

    assert (ended.status, ended.said) == (1, "")
    assert ended.failure["code"] == "wrong_kind"


def test_a_factor_is_asked_for_at_a_terminal_before_a_list(careful_desk: Desk, careful: Person, tmp_path: Path) -> None:
    command = careful_desk.command("webhooks", "list")
    with terminal(list(command), tmp_path, careful_desk.environment) as window:
        window.sees("Type the code of your authenticator or a recovery code")
        window.press(next_code(careful), "Enter")
        window.sees("There are no webhooks.")
        assert window.wait_for_end() == 0


def test_two_endpoints_of_one_address_are_told_apart_by_their_ids(owner_desk: Desk, receiver: Receiver) -> None:
    url = receiver.url("/200/twice")
    first, _ = (owner_desk.ok("webhooks", "add", url) for _ in range(2))
    ended = owner_desk.run("webhooks", "delete", url, "--yes")

    assert ended.status == 1
    assert "say the id" in ended.complained
    assert owner_desk.ok("webhooks", "delete", first["id"], "--yes") == {"deleted": first["id"]}
