"""time-window and rate-limit: when and how often."""

from datetime import UTC, datetime

import pytest

from custody.policies.judge import judge
from custody.policies.types import InvalidPolicy
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


def test_a_naive_clock_fails_closed():
    verdict = judge(window(allowedDays=[1]), native(1), facts(now=NOON.replace(tzinfo=None)))

    assert verdict.decision == "refuse"


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
    with pytest.raises(InvalidPolicy, match=r"Rule 1 \(time-window\)"):
        window(**config)


def test_an_unknown_time_zone_says_what_to_use():
    with pytest.raises(InvalidPolicy, match=r"IANA name such as Europe/Berlin .*knows only UTC"):
        window(allowedDays=[1], timezone="Mars/Olympus")


def test_one_order_more_than_the_rate_is_refused_until_the_next_grain():
    per_hour = judge(rate(maxTxPerHour=3), native(1), facts(orders_last_hour=3))
    per_day = judge(rate(maxTxPerDay=3), native(1), facts(orders_last_day=3))

    assert (per_hour.decision, per_hour.rate_limited, per_hour.retry_after) == ("refuse", True, 45)
    assert (per_day.decision, per_day.rate_limited, per_day.retry_after) == ("refuse", True, 1785)
    assert judge(rate(maxTxPerHour=3), native(1), facts(orders_last_hour=2)).decision == "sign"


def test_another_failing_hard_rule_makes_it_no_rate_refusal():
    both = rules(rule("rate-limit", {"maxTxPerHour": 1}), rule("spending-limit", {"maxPerTx": "1"}))

    verdict = judge(both, native(2), facts(orders_last_hour=1))

    assert (verdict.decision, verdict.rate_limited, verdict.retry_after) == ("refuse", False, None)


def test_a_failing_soft_rule_beside_it_leaves_it_a_rate_refusal():
    both = rules(rule("auto-approve-threshold", {"threshold": "1"}), rule("rate-limit", {"maxTxPerHour": 1}))

    assert judge(both, native(2), facts(orders_last_hour=1)).rate_limited


@pytest.mark.parametrize("config", [{}, {"maxTxPerHour": 0}, {"maxTxPerDay": "5"}, {"maxTxPerHour": 1.5}, {"max": 1}])
def test_a_rate_is_a_positive_whole_number(config):
    with pytest.raises(InvalidPolicy, match=r"Rule 1 \(rate-limit\)"):
        rate(**config)
