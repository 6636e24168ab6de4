"""time-window and rate-limit: when and how often."""

from datetime import UTC, datetime

import pytest

from custody.policies.judge import judge
from custody.policies.types import InvalidPolicy, Left, Room
from tests.rules.policies.makers import NOON, facts, native, rule, rules


def window(**config):
    return rules(rule("time-window", config))


def rate(**config):
    return rules(rule("rate-limit", config))


def at(set_, *moment):
    return judge(set_, native(1), facts(now=datetime(*moment, tzinfo=UTC))).decision


def test_the_end_hour_is_exclusive():
    office = window(allowedHours=[{"start": 9, "end": 17}])

    assert at(office, 2025, 6, 2, 9, 0) == "sign"
    assert at(office, 2025, 6, 2, 16, 59, 59) == "sign"
    assert at(office, 2025, 6, 2, 17, 0) == "refuse"


def test_a_start_after_the_end_wraps_midnight():
    night = window(allowedHours=[{"start": 22, "end": 2}])

    assert at(night, 2025, 6, 2, 23, 0) == "sign"
    assert at(night, 2025, 6, 2, 1, 59) == "sign"
    assert at(night, 2025, 6, 2, 2, 0) == "refuse"


def test_day_zero_is_sunday():
    assert at(window(allowedDays=[0]), 2025, 6, 1, 12, 0) == "sign"
    assert at(window(allowedDays=[0]), 2025, 6, 2, 12, 0) == "refuse"


def test_an_empty_list_does_not_restrict():
    assert at(window(allowedHours=[], allowedDays=[1]), 2025, 6, 2, 3, 0) == "sign"
    assert at(window(allowedDays=[], allowedHours=[{"start": 0, "end": 24}]), 2025, 6, 7, 3, 0) == "sign"


def test_hours_and_days_are_those_of_the_time_zone():
    monday_morning = window(allowedDays=[1], allowedHours=[{"start": 0, "end": 1}], timezone="Europe/Berlin")

    assert at(monday_morning, 2025, 6, 1, 22, 30) == "sign"
    assert at(monday_morning, 2025, 6, 2, 0, 30) == "refuse"


@pytest.mark.parametrize("config", [{"allowedDays": [1]}, {"notAfter": "2027-01-01T00:00:00Z"}])
def test_a_naive_clock_fails_closed(config):
    verdict = judge(window(**config), native(1), facts(now=NOON.replace(tzinfo=None)))

    assert verdict.decision == "refuse"


def test_a_window_opens_at_its_first_moment_and_is_over_at_its_last():
    month = window(notBefore="2025-06-02T09:30:00+02:00", notAfter="2025-07-01T00:00:00Z")

    assert at(month, 2025, 6, 2, 7, 29, 59, 999_999) == "refuse"
    assert at(month, 2025, 6, 2, 7, 30) == "sign"
    assert at(month, 2025, 6, 30, 23, 59, 59, 999_999) == "sign"
    assert at(month, 2025, 7, 1) == "refuse"
    assert at(month, 2031, 1, 1) == "refuse"


@pytest.mark.parametrize(
    ("config", "now", "reason"),
    [
        ({"notAfter": "2025-06-02T12:30:00Z"}, NOON, "since 2025-06-02 12:30 UTC nothing is signed under these rules"),
        ({"notAfter": "2025-06-02T12:30:15Z"}, NOON,
         "since 2025-06-02 12:30:15 UTC nothing is signed under these rules"),
        ({"notBefore": "2025-06-02T15:00:00+02:00"}, NOON,
         "until 2025-06-02 13:00 UTC nothing is signed under these rules"),
        ({"notBefore": "2025-06-02T12:00:00Z", "notAfter": "2025-06-02T13:00:00Z"}, NOON,
         "Monday 12:30 (UTC) is within the window"),
    ],
)  # fmt: skip
def test_a_window_says_from_when_or_until_when_nothing_is_signed(config, now, reason):
    assert judge(window(**config), native(1), facts(now=now)).results[0].reason == reason


def test_the_hours_count_between_the_moments_too():
    office = window(allowedHours=[{"start": 9, "end": 17}], notBefore="2025-06-02T12:00:00Z")

    assert at(office, 2025, 6, 2, 10, 0) == "refuse"
    assert at(office, 2025, 6, 2, 12, 0) == "sign"
    assert at(office, 2025, 6, 2, 17, 0) == "refuse"


def test_a_person_approves_nothing_that_comes_too_late():
    over = window(notAfter="2025-06-02T12:30:15Z")

    assert judge(over, native(1), facts(approving=True)).decision == "refuse"
    assert judge(over, native(1), facts()).room is None


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"notAfter": "2026-01-01"}, "`notAfter` must be a date and time with a zone"),
        ({"notBefore": "2026-01-01T00:00:00"}, "`notBefore` must be a date and time with a zone"),
        ({"notAfter": "2026-02-30T00:00:00Z"}, "`notAfter` must be a date and time with a zone"),
        ({"notBefore": "1767225600"}, "`notBefore` must be a date and time with a zone"),
        ({"notBefore": "2026-01-01T00:00:00Z", "notAfter": "2026-01-01T01:00:00+01:00"}, "earlier than `notAfter`"),
        ({"notBefore": "2026-01-02T00:00:00Z", "notAfter": "2026-01-01T00:00:00Z"}, "earlier than `notAfter`"),
        ({"notAfter": None, "notBefore": None}, "the rule restricts nothing"),
        ({"notAfter": ""}, "the rule restricts nothing"),
    ],
)
def test_moments_that_cannot_be_meant_are_not_accepted(config, why):
    with pytest.raises(InvalidPolicy, match=why):
        window(**config)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"allowedHours": [], "allowedDays": []},
        {"allowedHours": [{"start": 24, "end": 24}]},
        {"allowedHours": [{"start": 3, "end": 0}]},
        {"allowedHours": [{"start": 5, "end": 5}]},
        {"allowedDays": [7]},
        {"allowedDays": [1], "timezone": "Mars/Olympus"},
        {"allowedDays": [1], "timezone": "../../etc/passwd"},
        {"allowedDays": [1], "timezone": "Europe"},
        {"allowedDays": [1], "timezone": "UTC\n"},
    ],
)
def test_a_window_that_cannot_be_meant_is_not_accepted(config):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        window(**config)


def test_an_unknown_time_zone_says_what_to_use():
    with pytest.raises(InvalidPolicy, match=r"IANA name such as Europe/Berlin .*knows only UTC"):
        window(allowedDays=[1], timezone="Mars/Olympus")


def before(*ages, grain):
    """Buckets of one order each, so many seconds before now."""
    return [(int(NOON.timestamp()) // grain * grain - age * grain, 1) for age in ages]


def test_one_order_more_than_the_rate_is_refused_until_the_oldest_has_left_the_window():
    # It is 12:30:15. A minute counts until 61 minutes after its start, an hour until 25 hours after it.
    minutes, hours = before(0, 5, 40, grain=60), before(0, 3, 20, grain=3600)

    per_hour = judge(rate(maxTxPerHour=3), native(1), facts(orders_last_hour=3, minutes=minutes))
    per_day = judge(rate(maxTxPerDay=3), native(1), facts(orders_last_day=3, hours=hours))

    assert (per_hour.decision, per_hour.room) == ("refuse", Room(21 * 60 - 15, 3))
    assert (per_day.decision, per_day.room) == ("refuse", Room(5 * 3600 - 1815, 3))
    assert judge(rate(maxTxPerHour=3), native(1), facts(orders_last_hour=2, minutes=minutes[:2])).decision == "sign"


def test_a_limit_that_was_lowered_waits_until_enough_orders_have_left():
    minutes = [*before(10, 20, grain=60), (before(30, grain=60)[0][0], 2)]

    verdict = judge(rate(maxTxPerHour=1), native(1), facts(orders_last_hour=4, minutes=minutes))

    # All four must leave, and the newest is ten minutes old.
    assert verdict.room == Room(51 * 60 - 15, 1)


def test_of_two_full_windows_and_of_two_rules_the_one_that_has_room_last_counts():
    counted = facts(orders_last_hour=1, orders_last_day=2, minutes=before(2, grain=60), hours=before(0, 22, grain=3600))
    day = Room(3 * 3600 - 1815, 2)

    assert judge(rate(maxTxPerHour=1, maxTxPerDay=2), native(1), counted).room == day
    two = rules(rule("rate-limit", {"maxTxPerDay": 2}), rule("rate-limit", {"maxTxPerHour": 1}))
    assert judge(two, native(1), counted).room == day


def test_the_narrowest_window_says_what_is_left():
    counted = facts(orders_last_hour=1, orders_last_day=2, minutes=before(2, grain=60), hours=before(0, 22, grain=3600))

    def room_left(**config):
        return rate(**config)[0].terms.room_left(counted)

    # The order itself counts too.
    assert room_left(maxTxPerHour=2, maxTxPerDay=9) == Left(2, 0, 59 * 60 - 15)
    assert room_left(maxTxPerHour=9, maxTxPerDay=4) == Left(4, 1, 3 * 3600 - 1815)
    # Of two with as much room the one that has it for longer.
    assert room_left(maxTxPerHour=3, maxTxPerDay=4) == Left(4, 1, 3 * 3600 - 1815)
    assert window(allowedDays=[1])[0].terms.room_left(counted) is None


def test_another_failing_hard_rule_makes_it_no_rate_refusal():
    both = rules(rule("rate-limit", {"maxTxPerHour": 1}), rule("spending-limit", {"maxPerTx": "1"}))

    verdict = judge(both, native(2), facts(orders_last_hour=1))

    assert (verdict.decision, verdict.room) == ("refuse", None)


def test_a_failing_soft_rule_beside_it_leaves_it_a_rate_refusal():
    both = rules(rule("auto-approve-threshold", {"threshold": "1"}), rule("rate-limit", {"maxTxPerHour": 1}))

    assert judge(both, native(2), facts(orders_last_hour=1)).room is not None


@pytest.mark.parametrize("config", [{}, {"maxTxPerHour": 0}, {"maxTxPerDay": "5"}, {"maxTxPerHour": 1.5}, {"max": 1}])
def test_a_rate_is_a_positive_whole_number(config):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        rate(**config)


@pytest.mark.parametrize(
    ("window", "config", "known"),
    [
        ("hour", {"maxTxPerHour": 3, "maxTxPerDay": 9}, {"orders_last_hour": 4, "orders_last_day": 8}),
        ("day", {"maxTxPerHour": 9, "maxTxPerDay": 3}, {"orders_last_hour": 2, "orders_last_day": 4}),
    ],
)
def test_a_full_window_is_told_and_says_alone_when_there_is_room(window, config, known):
    known |= {"minutes": before(0, 5, 40, 50, grain=60), "hours": before(0, 1, 2, 3, 4, 5, 6, 7, grain=3600)}
    (parsed,) = rate(**config)
    reason = f"4 orders in the last {window} reach the limit of 3 per {window}"
    assert parsed.terms.check(native(1), facts(**known)) == (False, reason)
    (alone,) = rate(**{name: most for name, most in config.items() if most == 3})
    assert parsed.terms.room(facts(**known)) == alone.terms.room(facts(**known)) is not None
    # With room in both there is nothing to wait for.
    assert parsed.terms.room(facts(**known | {"orders_last_hour": 2, "orders_last_day": 2})) is None


@pytest.mark.parametrize(
    ("short", "written"),
    [
        ({"allowedDays": [1]}, {"allowedDays": [1], "allowedHours": [{"start": 0, "end": 24}]}),
        ({"allowedHours": [{"start": 9, "end": 17}]},
         {"allowedHours": [{"start": 9, "end": 17}], "allowedDays": [0, 1, 2, 3, 4, 5, 6]}),
        ({"allowedHours": [{"start": 22, "end": 2}]},
         {"allowedHours": [{"start": 22, "end": 24}, {"start": 0, "end": 2}]}),
    ],
)  # fmt: skip
def test_a_window_is_the_same_where_all_of_it_is_written_out(short, written):
    (one,), (other,) = window(**short), window(**written)
    assert (one.terms.hours, one.terms.days) == (other.terms.hours, other.terms.days)
    assert one.terms.tightens(other.terms)
    assert other.terms.tightens(one.terms)
