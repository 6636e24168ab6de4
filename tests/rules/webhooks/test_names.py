"""Events that an endpoint may subscribe to, and those that it then gets."""

import re

import pytest

from custody.webhooks.names import SUBSCRIBABLE, TEST, UnknownEvent, in_order, is_subscribed
from tests.fixtures.each import each
from tests.outside.processes import PROJECT


def test_the_page_for_receivers_lists_the_events_that_there_are() -> None:
    table = (PROJECT / "docs/webhooks.md").read_text().split("| `event` |")[1].split("\n\n")[0]

    assert tuple(re.findall(r"^\| `([a-z_.]+)` \|", table, re.MULTILINE)) == (*SUBSCRIBABLE, TEST)


def test_events_are_kept_once_each_and_in_one_order() -> None:
    assert in_order(["tx.signed", "tx.pending", "tx.signed"]) == ["tx.pending", "tx.signed"]
    assert in_order(None) is None


@each("event", [TEST, "tx.*", "TX.SIGNED", "", "tx.signed "])
def test_an_unknown_event_is_refused(event: str) -> None:
    with pytest.raises(UnknownEvent):
        in_order(["tx.signed", event])


def test_a_test_goes_to_nobody_as_an_event() -> None:
    assert [is_subscribed(events, TEST) for events in (None, [TEST])] == [False, False]
    assert is_subscribed(None, "a.later.one")
    assert not is_subscribed(["tx.signed"], "tx.denied")
