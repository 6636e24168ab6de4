"""Times in words, as lists and countdowns have them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from words.texts.moments import ago, clock, moment, span

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m 00s"),
        (192, "3m 12s"),
        (3_599, "59m 59s"),
        (3_600, "1h 00m"),
        (7_500, "2h 05m"),
        (86_399, "23h 59m"),
        (86_400, "1d 0h"),
        (529_200, "6d 3h"),
        (86_400 * 4_000, "4000d 0h"),
    ],
)
def test_a_length_has_at_most_two_units(seconds: int, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3_600, "1h"), (90_000, "1d")]
)
def test_how_long_ago_has_one_unit(seconds: int, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


def test_a_missing_time_is_shown_as_a_dash() -> None:
    assert (ago(None, NOW), clock(None)) == ("-", "-")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-03-04T05:06:07Z", "2026-03-04 05:06:07 UTC"),
        ("2026-03-04T05:06:07.999+02:00", "2026-03-04 03:06:07 UTC"),
        ("2026-03-04T05:06:07", "2026-03-04 05:06:07 UTC"),
        ("", "-"),
        (None, "-"),
        ("yesterday", "-"),
        ("2026-13-04T05:06:07Z", "-"),
        ("9" * 5_000, "-"),
        ("٢٠٢٦-03-04T05:06:07Z", "-"),
    ],
)
def test_a_time_is_shown_in_utc_and_what_is_none_is_not_shown(text: str | None, shown: str) -> None:
    assert clock(moment(text)) == shown


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_at_the_end_of_all_calendars_is_none(text: str) -> None:
    assert clock(moment(text)) == "-"


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    clock(moment(text))
