"""The context of an item is fetched again once it is old, and no decision begins with old context."""

from datetime import UTC, datetime, timedelta

import pytest

from console.queue.context_cache import REMEMBERED, ContextCache
from tests.console.orders import order
from words.orders.dangers import dangers
from words.orders.order import Known

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
KNOWN = Known(frozen="This agent is frozen.")


def seconds(count: float) -> datetime:
    return NOW + timedelta(seconds=count)


@pytest.mark.parametrize(
    ("age", "recent"), [(0, True), (30, True), (31, False), (3_600, False), (-20, True), (-3_600, False)]
)
def test_old_context_is_dropped_when_a_decision_begins(age: float, recent: bool) -> None:
    around = ContextCache()
    around.take("a", KNOWN, NOW)

    assert around.recent("a", seconds(age)) == (KNOWN if recent else None)
    assert around.latest("a") == (KNOWN if recent else None)


def test_shown_context_stays_until_newer_context_arrives() -> None:
    around = ContextCache()
    around.take("a", KNOWN, NOW)
    assert around.latest("a") == KNOWN

    around.take("a", Known(), seconds(3_600))

    assert around.latest("a") == Known()


def test_a_service_that_stumbles_takes_away_nothing_that_was_known_a_moment_ago() -> None:
    around, whole = ContextCache(), Known(data="0x095ea7b3", frozen="Frozen.")
    around.take("a", whole, NOW)

    assert around.take("a", Known(trouble="Unavailable right now."), seconds(20)) == whole
    assert around.recent("a", seconds(31)) is None

    around.take("a", whole, NOW)
    late = around.take("a", Known(trouble="Unavailable right now."), seconds(31))
    assert (late.data, late.frozen, late.trouble) == ("0x095ea7b3", "", "Unavailable right now.")
    assert around.take("b", Known(trouble="Not known."), NOW).trouble == "Not known."


def test_the_order_itself_outlives_its_context() -> None:
    around, whole = ContextCache(), Known(data="0x095ea7b3", frozen="Frozen.")
    around.take("a", whole, NOW)

    assert around.recent("a", seconds(31)) is None
    kept = around.take("a", Known(trouble="Unavailable right now."), seconds(31))

    assert (kept.data, kept.frozen) == ("0x095ea7b3", "")


def test_deciding_with_context_that_could_not_be_refreshed_is_warned_about() -> None:
    around = ContextCache()
    around.take("a", KNOWN, NOW)

    told = [around.for_decision("a", seconds(age)) for age in (0, 60, 61)]

    assert [known.doubt[:5] if known else None for known in told] == ["", "", "Names"]
    assert any("more than a minute old" in line.text for line in dangers(order(), told[2] or Known()))


def test_an_answer_that_comes_late_does_not_replace_a_newer_one() -> None:
    around, newer = ContextCache(), Known(frozen="Frozen.")
    around.take("a", newer, seconds(5))

    assert around.take("a", Known(), NOW) == newer
    # After the clock was set back by much there is no telling which is newer.
    assert around.take("a", Known(trouble="Not known."), seconds(-3_600)).trouble == "Not known."


def test_it_is_asked_again_before_the_answer_is_old_and_not_all_the_time() -> None:
    around = ContextCache()
    assert around.wants("a", NOW)
    around.ask("a", NOW)

    assert [around.wants("a", seconds(age)) for age in (0, 20, 21)] == [False, False, True]
    assert around.wants("b", NOW)
    around.give_up("a")
    assert around.wants("a", NOW)


def test_of_many_items_the_newest_are_remembered() -> None:
    around = ContextCache()
    for number in range(REMEMBERED + 1):
        around.ask(str(number), NOW)
        around.take(str(number), KNOWN, NOW)

    assert [around.latest(key) for key in ("0", "1")] == [None, KNOWN]
    assert [around.wants(key, NOW) for key in ("0", "1")] == [True, False]
