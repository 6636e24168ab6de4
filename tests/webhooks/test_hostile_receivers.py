"""The fate of a delivery to a receiver that does not behave, and of those beside it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.fixtures.eventually import PATIENCE_SECONDS
from tests.fixtures.hooked import Hooked, new_hooks, rows
from tests.outside.hostile_receiver import Heard
from tests.outside.loopback import HELD_BYTES

pytestmark = pytest.mark.long

# Of this a second goes by for a short body that does not end; the rest is for a machine that is busy.
PATIENCE = 6.0
# What the server does: the word for what went wrong, the status that was heard.
FAILS = {
    "status-500": ("status", 500),
    "status-199": ("timeout", None),
    "status-404": ("status", 404),
    "status-300": ("redirect", 300),
    "redirect": ("redirect", 307),
    "gone": ("gone", 410),
    "early": ("closed", None),
    "half": ("closed", None),
    "garbage": ("closed", None),
    "endless-head": ("closed", None),
    "mute": ("timeout", None),
    "drip": ("timeout", None),
}
REFUSED_SERVERS = ("self-signed", "wrong-name", "expired")
DELIVERED = ("good", "closing", "huge", "bomb", "drip-body", "status-299")
WAITS = {"busy": (3600, 3960), "later": (300, 330), "soon": (60, 66), "status-502": (60, 66)}


class After(msgspec.Struct):
    """The outcome of one event at each kind of receiver."""

    hooks: Any
    urls: dict[str, str]
    rows: dict[str, dict[str, Any]]
    heard: dict[str, list[Heard]]
    shown: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def after(hook_world: Hooked) -> Iterator[After]:
    """One event, sent to everybody at once."""
    with new_hooks(hook_world) as hooks:
        urls = {does: hooks.endpoint(does) for does in (*FAILS, *DELIVERED)}
        urls |= {does: hooks.endpoint(does, maxRetries=1, retryBackoffMs=60_000) for does in WAITS}
        urls |= {server: hooks.endpoint(server=server) for server in (*REFUSED_SERVERS, "plain")}
        with hook_world.scheduler(PATIENCE):
            hooks.event()
            shown = {does: hooks.ended_deliveries(url)[0] for does, url in urls.items()}
        yield After(hooks, urls, {}, {does: hooks.receivers.at(url) for does, url in urls.items()}, shown)


async def _row(after: After, does: str) -> dict[str, Any]:
    query = "SELECT d.* FROM deliveries d WHERE d.endpoint_id = $1::text::uuid"
    [row] = await rows(after.hooks.service.database, query, after.hooks.id_of(after.urls[does]))
    return dict(row)


@pytest.mark.parametrize("does", FAILS)
async def test_a_bad_answer_is_a_failure_with_a_reason_of_custody(after: After, does: str) -> None:
    row = await _row(after, does)

    assert (row["status"], row["error"], row["response_status"]) == ("failed", *FAILS[does])
    assert (row["attempts"], row["next_retry_at"], row["delivered_at"]) == (1, None, None)
    assert len(after.heard[does]) == 1
    assert after.shown[does]["hasError"]


@pytest.mark.parametrize("server", REFUSED_SERVERS)
async def test_a_receiver_without_a_valid_certificate_gets_nothing(after: After, server: str) -> None:
    row = await _row(after, server)

    assert (row["status"], row["error"]) == ("failed", "tls")
    assert after.heard[server] == []


@pytest.mark.parametrize("does", [*DELIVERED, "plain"])
async def test_a_good_head_is_a_delivery_whatever_the_body_is(after: After, does: str) -> None:
    row = await _row(after, does)

    assert (row["status"], row["error"], row["next_retry_at"]) == ("delivered", None, None)
    assert row["delivered_at"] is not None
    assert len(after.heard[does]) == 1


@pytest.mark.parametrize("does", WAITS)
async def test_a_receiver_may_ask_for_a_later_time_up_to_an_hour(after: After, does: str) -> None:
    row = await _row(after, does)
    least, most = WAITS[does]

    assert (row["status"], row["attempts"], row["max_attempts"]) == ("failed", 1, 2)
    waited = (row["next_retry_at"] - row["created_at"]).total_seconds()
    # Between the event and the answer lie the intervals of the jobs, and the time that each answer takes.
    assert least <= waited <= most + PATIENCE + PATIENCE_SECONDS
    assert after.shown[does]["nextRetryAt"] is not None


def test_a_redirect_leads_nowhere(after: After) -> None:
    assert not [one for one in after.hooks.receivers.heard if one.path.endswith("/redirect/good")]


def test_of_a_body_without_end_little_is_taken(after: After) -> None:
    path = "/" + after.urls["huge"].split("/", 3)[3]

    assert 0 < after.hooks.receivers.sent[path] < HELD_BYTES


def test_requests_are_the_same_for_all_receivers_and_name_the_sender(after: After) -> None:
    first = after.heard["good"][0]

    assert first.headers["content-type"] == "application/json"
    assert first.headers["user-agent"].startswith("Custody-Webhooks/")
    assert "cookie" not in first.headers
    assert {one[0].body for one in after.heard.values() if one} == {first.body}
    ids = [one[0].headers["webhook-id"] for one in after.heard.values() if one]
    assert len(set(ids)) == len(ids)


async def test_a_receiver_that_answers_410_is_disabled_and_audited(after: After) -> None:
    gone, busy = after.hooks.read(after.urls["gone"]), after.hooks.read(after.urls["busy"])
    query = "SELECT resource_id, written_by FROM audit WHERE tenant_id = $1 AND action = 'delivery.endpoint_disabled'"
    written = await rows(after.hooks.service.database, query, after.hooks.tenant.id)

    assert (gone["enabled"], gone["disabledReason"]) == (False, "The receiver answered 410 Gone.")
    assert (busy["enabled"], busy["disabledReason"]) == (True, None)
    assert [tuple(row) for row in written] == [(after.hooks.id_of(after.urls["gone"]), "custody_scheduler")]


def test_nothing_was_sent_before_its_time(after: After) -> None:
    due = datetime.fromisoformat(after.shown["busy"]["nextRetryAt"])

    assert due > datetime.now(UTC) + timedelta(minutes=50)
    assert len(after.heard["busy"]) == 1
