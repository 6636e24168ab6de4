"""circuit-breaker: it judges no order, and fewer in a longer window are tighter."""

import pytest

from custody.policies.judge import judge
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy
from signer.breakers import row_of
from tests.rules.policies.makers import facts, native, rule, rules, unread_call


@pytest.mark.parametrize("order", [native(5), unread_call()])
def test_no_order_fails_it(order):
    assert judge(rules(rule("circuit-breaker", {"minutes": 1, "refused": 1})), order, facts()).decision == "sign"


@pytest.mark.parametrize(
    ("old", "new", "is_tighter"),
    [
        ({"minutes": 5, "refused": 3}, {"minutes": 5, "refused": 3}, True),
        ({"minutes": 5, "refused": 3}, {"minutes": 6, "refused": 2, "failed": 9}, True),
        ({"minutes": 5, "refused": 3}, {"minutes": 4, "refused": 3}, False),
        ({"minutes": 5, "refused": 3}, {"minutes": 5, "refused": 4}, False),
        ({"minutes": 5, "refused": 3}, {"minutes": 5, "failed": 3}, False),
        ({"minutes": 5, "refused": 3, "failed": 2}, {"minutes": 5, "refused": 3}, False),
        ({"minutes": 5, "failed": 2}, {"minutes": 5, "failed": 1}, True),
    ],
)
def test_fewer_in_a_longer_window_are_tighter(old, new, is_tighter):
    found = widening(rules(rule("circuit-breaker", old)), rules(rule("circuit-breaker", new)), empty_policy="allow")

    assert (found is None) is is_tighter


@pytest.mark.parametrize("config", [{"minutes": 1}, {"minutes": 1, "refused": None, "failed": None}])
def test_a_rule_that_counts_nothing_is_refused(config):
    with pytest.raises(InvalidPolicy, match="give `refused` or `failed`"):
        rules(rule("circuit-breaker", config))


def test_each_enabled_rule_counts_in_its_own_window():
    set_ = rules(
        rule("circuit-breaker", {"minutes": 5, "refused": 3, "failed": 1}, id="a"),
        rule("circuit-breaker", {"minutes": 1, "refused": 1}, id="b"),
        rule("circuit-breaker", {"minutes": 9, "refused": 9}, id="c", enabled=False),
        rule("rate-limit", {"maxTxPerHour": 1}, id="d"),
    )

    refused, failed = row_of(set_, "refused", "tx"), row_of(set_, "failed", "tx")
    assert refused is not None
    assert (refused.minutes, refused.most) == ([5, 1], [3, 1])
    assert refused.reasons == [
        "3 orders were refused in 5 minutes: frozen by rule a",
        "1 order was refused in 1 minute: frozen by rule b",
    ]
    assert failed is not None
    assert failed.reasons == ["1 order failed in 5 minutes: frozen by rule a"]
    assert row_of(set_[2:], "refused", "tx") is None
