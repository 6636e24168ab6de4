"""Budgets, alerts and rent: what each limit has left, which shares are crossed, at every edge."""

from collections.abc import Mapping, Sequence

import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.solana.family import SOLANA_NATIVE
from custody.policies.budgets import Budget, alerts, budgets
from custody.policies.judge import judge
from custody.policies.types import Alert, InvalidPolicy, Spend
from tests.rules.policies.makers import ALICE, TOKEN, approval_call, facts, native, rent, rule, rules, token_call

RENT = "solana:rent"
BOTH = rule("spending-limit", {"maxPerDay": "100", "maxPerWeek": "500"}, id="both")


def show(set_: Sequence, order, known, ledger: Mapping[str, tuple[int, int]], charges: Mapping[str, int]):
    return budgets(rules(*set_), order, ledger, known, charges)


def test_a_budget_shows_each_window_before_and_after():
    found = show([BOTH], native(7), facts(20, 40), {EVM_NATIVE: (20, 40)}, {EVM_NATIVE: 7})

    assert found == [
        Budget("both", "day", EVM_NATIVE, "100", "20", "27"),
        Budget("both", "week", EVM_NATIVE, "500", "40", "47"),
    ]


def test_a_slot_that_is_taken_over_counts_once_at_its_larger_amount():
    """The ledger has the slot's 30; the facts leave it out, and it is the floor."""
    known = facts(20, 40, floor={EVM_NATIVE: 30})

    smaller = show([BOTH], native(7), known, {EVM_NATIVE: (50, 70)}, {EVM_NATIVE: 7})
    larger = show([BOTH], native(31), known, {EVM_NATIVE: (50, 70)}, {EVM_NATIVE: 31})

    assert [(one.before, one.after) for one in smaller] == [("50", "50"), ("70", "70")]
    assert [(one.before, one.after) for one in larger] == [("50", "51"), ("70", "71")]


def test_an_untouched_budget_stays():
    token = rule("spending-limit", {"maxPerDay": "9", "maxPerWeek": "20", "asset": TOKEN}, id="token")

    found = show([BOTH, token], native(7), facts(), {TOKEN: (3, 5)}, {EVM_NATIVE: 7})

    assert [(one.policy_id, one.window, one.before, one.after) for one in found] == [
        ("both", "day", "0", "7"),
        ("both", "week", "0", "7"),
        ("token", "day", "3", "0"),
        ("token", "week", "5", "0"),
    ]


def test_a_disabled_rule_has_no_budget_and_raises_no_alert():
    off = rule("spending-limit", {"maxPerDay": "100"}, enabled=False)

    assert show([off], native(7), facts(), {}, {EVM_NATIVE: 7}) == []
    assert alerts(rules(off), "evm", {EVM_NATIVE: 100}, facts()) == ()


def test_a_rule_without_a_window_has_no_budget():
    assert show([rule("spending-limit", {"maxPerTransaction": "9"})], native(7), facts(), {}, {EVM_NATIVE: 7}) == []


def test_a_rule_without_an_asset_is_about_the_coin_of_the_family():
    assert [one.asset for one in show([BOTH], rent(), facts(), {}, {})] == [SOLANA_NATIVE, SOLANA_NATIVE]


DAY = {"maxPerDay": "200", "alertPercents": [50, 100]}


def test_every_limit_raises_its_own_alert_and_two_alike_raise_one():
    day, week, token = (
        rule("spending-limit", {**limit, "alertPercents": [50]})
        for limit in ({"maxPerDay": "10"}, {"maxPerWeek": "10"}, {"maxPerDay": "4", "asset": TOKEN})
    )
    crossed = alerts(rules(day, week, day, token), "evm", {EVM_NATIVE: 5, TOKEN: 2}, facts())
    assert crossed == (
        Alert("day", EVM_NATIVE, 5, 10, 50),
        Alert("week", EVM_NATIVE, 5, 10, 50),
        Alert("day", TOKEN, 2, 4, 50),
    )


def test_an_order_that_moves_nothing_of_an_asset_alerts_of_none():
    """Neither one unit below the share nor at it, which the order before had crossed."""
    limit = rules(rule("spending-limit", {"maxPerDay": "100", "alertPercents": [50]}))
    for spent in (49, 50):
        assert alerts(limit, "evm", {}, facts(spent)) == ()
    assert [one.percent for one in alerts(limit, "evm", {EVM_NATIVE: 1}, facts(49))] == [50]


@pytest.mark.parametrize(
    ("before", "charge", "floor", "percents"),
    [
        (0, 99, 0, []),
        (0, 100, 0, [50]),
        (99, 1, 0, [50]),
        (100, 1, 0, []),
        (100, 99, 0, []),
        (100, 100, 0, [100]),
        (99, 101, 0, [50, 100]),
        (0, 200, 0, [50, 100]),
        (199, 1, 0, [100]),
        (200, 1, 0, []),
        # A slot that is taken over had crossed already what it counted.
        (50, 60, 49, [50]),
        (50, 60, 50, []),
        (50, 150, 60, [100]),
    ],
)
def test_a_share_is_told_when_it_is_reached_and_never_again(before, charge, floor, percents):
    known = facts(before, floor={EVM_NATIVE: floor})

    found = alerts(rules(rule("spending-limit", DAY)), "evm", {EVM_NATIVE: charge}, known)

    assert found == tuple(Alert("day", EVM_NATIVE, before + charge, 200, percent) for percent in percents)


@pytest.mark.parametrize(("window", "spent"), [("day", 10), ("week", 90)])
def test_each_window_alerts_by_its_own_spend(window, spent):
    config = {"maxPerDay" if window == "day" else "maxPerWeek": "100", "alertPercents": [15, 95]}

    found = alerts(rules(rule("spending-limit", config)), "evm", {EVM_NATIVE: 5}, facts(10, 90))

    assert found == (Alert(window, EVM_NATIVE, spent + 5, 100, 15 if window == "day" else 95),)


def test_a_percent_of_a_limit_that_is_no_whole_number_is_reached_by_the_next_one():
    config = {"maxPerDay": "7", "alertPercents": [50]}

    assert alerts(rules(rule("spending-limit", config)), "evm", {EVM_NATIVE: 3}, facts()) == ()
    assert len(alerts(rules(rule("spending-limit", config)), "evm", {EVM_NATIVE: 4}, facts())) == 1


def test_two_limits_of_one_size_alert_once():
    config = {"maxPerDay": "10", "alertPercents": [50]}
    twice = rules(rule("spending-limit", config, id="a"), rule("spending-limit", config, id="b"))

    assert alerts(twice, "evm", {EVM_NATIVE: 5}, facts()) == (Alert("day", EVM_NATIVE, 5, 10, 50),)


def test_a_limit_without_percents_never_alerts():
    assert (
        alerts(
            rules(rule("spending-limit", {"maxPerDay": "10", "alertPercents": []})), "evm", {EVM_NATIVE: 10}, facts()
        )
        == ()
    )


def test_only_what_is_signed_alerts():
    config = {"maxPerDay": "10", "alertPercents": [50]}
    limit, ask = rule("spending-limit", config), rule("auto-approve-threshold", {"threshold": "1"})

    assert judge(rules(limit), native(5), facts()).alerts == (Alert("day", EVM_NATIVE, 5, 10, 50),)
    assert judge(rules(limit, ask), native(5), facts()).alerts == ()
    assert judge(rules(limit), native(11), facts()).alerts == ()


def rent_limit(**config):
    return rules(rule("spending-limit", {"maxPerDay": "99999999", "asset": SOLANA_NATIVE, **config}))


@pytest.mark.parametrize(
    ("most", "spent", "passed"),
    [(2_039_280, 0, True), (2_039_279, 0, False), (3_000_000, 960_720, True), (3_000_000, 960_721, False)],
)
def test_rent_counts_towards_its_own_limit_with_what_was_paid_before(most, spent, passed):
    set_ = rent_limit(maxRentPerDay=str(most))
    known = facts(spend={RENT: Spend(spent, 10**9)})

    verdict = judge(set_, rent(2_039_280), known)

    assert (verdict.decision == "refuse", verdict.results[0].passed) == (not passed, passed)
    assert ("of rent is within its limit" if passed else "rent of ") in verdict.results[0].reason


def test_the_limit_of_the_asset_is_looked_at_beside_that_on_rent():
    verdict = judge(rent_limit(maxPerTransaction="2039279", maxRentPerDay="9999999"), rent(2_039_280), facts())

    assert verdict.decision == "refuse"
    assert "exceeds the limit" in verdict.results[0].reason
    assert "rent" not in verdict.results[0].reason


def test_without_a_limit_on_rent_the_sentence_says_nothing_of_it_and_a_person_decides():
    verdict = judge(rent_limit(), rent(), facts())

    assert (verdict.decision, verdict.results[0].passed) == ("queue", True)
    assert "rent" not in verdict.results[0].reason


def test_an_order_without_rent_does_not_meet_the_limit_on_it():
    set_ = rent_limit(maxRentPerDay="0")
    known = facts(spend={RENT: Spend(5, 5)})

    assert judge(set_, rent(0), known).results[0].passed
    assert not judge(set_, rent(1), known).results[0].passed


def test_a_limit_on_rent_is_a_budget_and_alerts_like_any_other():
    set_ = [rule("spending-limit", {"maxPerDay": "9", "maxRentPerDay": "100", "alertPercents": [50]}, id="limit")]
    charges = {SOLANA_NATIVE: 0, RENT: 60}

    found = budgets(rules(*set_), rent(60), {RENT: (20, 30)}, facts(spend={RENT: Spend(20, 30)}), charges)

    assert (found[-1].asset, found[-1].window, found[-1].before, found[-1].after) == (RENT, "day", "20", "80")
    assert alerts(rules(*set_), "solana", charges, facts(spend={RENT: Spend(20, 30)})) == (
        Alert("day", RENT, 80, 100, 50),
    )
    assert [one.asset for one in budgets(rules(*set_), native(1), {}, facts(), {})] == [EVM_NATIVE]


@pytest.mark.parametrize("order", [token_call(5), approval_call(5, spender=ALICE)])
def test_a_payment_of_a_token_is_in_its_budget(order):
    set_ = rules(rule("spending-limit", {"maxPerDay": "10", "asset": TOKEN}, id="token"))

    charges = judge(set_, order, facts()).charges

    assert [one.after for one in budgets(set_, order, {}, facts(), charges)] == ["5"]


def test_rent_is_limited_besides_an_asset_of_any_family_and_for_solana_alone_without_one():
    def assets(family, **config):
        (parsed,) = rules(rule("spending-limit", {"maxPerDay": "9", "maxRentPerDay": "5", **config}))
        return [(one.window, one.asset, one.most) for one in parsed.terms.limits(family)]

    mint = "solana:So11111111111111111111111111111111111111112"
    for family in ("evm", "solana"):
        assert assets(family, asset=mint) == [("day", mint, 9), ("day", RENT, 5)]
    assert assets("solana") == [("day", SOLANA_NATIVE, 9), ("day", RENT, 5)]
    assert assets("evm") == [("day", EVM_NATIVE, 9)]


@pytest.mark.parametrize("field", ["maxPerTransaction", "maxPerDay", "maxPerWeek", "maxRentPerDay"])
def test_an_amount_beyond_any_is_refused_by_its_field(field):
    with pytest.raises(InvalidPolicy, match=f"`{field}` must be at most"):
        rules(rule("spending-limit", {"maxPerDay": "9", field: str(2**256)}))


@pytest.mark.parametrize(("window", "days"), [("day", "24 hours"), ("week", "7 days")])
def test_a_limit_that_is_exceeded_is_told_with_its_window(window, days):
    (parsed,) = rules(rule("spending-limit", {f"maxPer{window.title()}": "9"}))
    passed, reason = parsed.terms.check(native(7), facts(3))
    assert not passed
    assert reason.startswith(f"7 wei now and 3 wei in the last {days} would exceed the limit of 9 wei per {window} ")
