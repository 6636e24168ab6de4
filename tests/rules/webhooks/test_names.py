"""Events that an endpoint may subscribe to, and those that it then gets."""

import pytest

from custody.webhooks.names import SUBSCRIBABLE, TEST, UnknownEvent, ordered, subscribed


def test_every_event_is_on_the_list() -> None:
    assert SUBSCRIBABLE == (
        "tx.pending",
        "approval.voted",
        "quorum.broken",
        "tx.approved",
        "tx.denied",
        "tx.signed",
        "tx.confirmed",
        "tx.failed",
        "spend.threshold",
        "policy.violation",
        "intent.created",
        "intent.authorized",
        "intent.executed",
        "intent.failed",
        "intent.rejected",
        "intent.canceled",
        "intent.expired",
        "user.unlinked_account",
    )


def test_events_are_kept_once_each_and_in_one_order() -> None:
    assert ordered(["tx.signed", "tx.pending", "tx.signed"]) == ["tx.pending", "tx.signed"]
    assert ordered(None) is None


@pytest.mark.parametrize("event", [TEST, "tx.*", "TX.SIGNED", "", "tx.signed "])
def test_an_unknown_event_is_refused(event: str) -> None:
    with pytest.raises(UnknownEvent):
        ordered(["tx.signed", event])


def test_a_test_goes_to_nobody_as_an_event() -> None:
    assert [subscribed(events, TEST) for events in (None, [TEST])] == [False, False]
    assert subscribed(None, "a.later.one")
    assert not subscribed(["tx.signed"], "tx.denied")
