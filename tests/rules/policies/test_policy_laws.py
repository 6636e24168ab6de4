"""Laws of the policy engine over drawn sets, orders and facts."""

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from custody.policies.judge import judge
from custody.policies.kinds import PolicyRule
from custody.policies.narrow import narrow
from custody.policies.rules import canonical, parse, wire
from custody.policies.tighten import widening
from tests.fixtures.thorough import THOROUGH
from tests.rules.policies.drawn import (
    CASES,
    CONFIGS,
    MAKERS,
    addresses,
    alter,
    amounts,
    facts_drawn,
    orders,
    rule_drawn,
    rule_of,
    sets,
    successors,
)
from tests.rules.policies.makers import rule, rules
from tests.rules.policies.second_opinion import decide

RANK = {"sign": 0, "queue": 1, "refuse": 2}
quick = settings(max_examples=60 * THOROUGH)
limits = st.sampled_from(("spending-limit", "auto-approve-threshold")).flatmap(rule_of)
hard_types = st.sampled_from([name for name in CONFIGS if name != "auto-approve-threshold"])


def rank(set_, order, facts):
    return RANK[judge(set_, order, facts).decision]


@quick
@given(
    sets, st.tuples(st.sampled_from(tuple(MAKERS)), addresses), st.tuples(amounts, st.integers(1, 2**127)), facts_drawn
)
def test_a_verdict_never_gets_milder_when_the_value_grows(given_, payment, value, facts):
    (kind, to), (amount, more) = payment, value
    smaller, larger = MAKERS[kind](amount, to), MAKERS[kind](amount + more, to)

    assert rank(rules(*given_), larger, facts) >= rank(rules(*given_), smaller, facts)


@quick
@given(sets, hard_types.flatmap(rule_of), orders, facts_drawn)
def test_adding_a_hard_rule_never_turns_a_refusal_into_a_signature(given_, added, order, facts):
    # A refusal for want of any hard rule, or of cover, is exactly what a first rule may end.
    facts = msgspec.structs.replace(facts, empty_policy="allow", uncovered="queue")

    if judge(rules(*given_), order, facts).decision == "refuse":
        assert judge(rules(*given_, added), order, facts).decision == "refuse"


@quick
@given(sets, st.data(), orders, facts_drawn)
def test_lowering_a_limit_never_allows_more(given_, data, order, facts):
    limit = data.draw(rule_of("spending-limit"))
    lower = {
        name: str(data.draw(st.integers(0, int(value)))) if name.startswith("max") else value
        for name, value in limit.config.items()
    }
    before = rank(rules(*given_, limit), order, facts)

    assert rank(rules(*given_, msgspec.structs.replace(limit, config=lower)), order, facts) >= before


@settings(quick, max_examples=60 * THOROUGH)
@given(st.data(), sets)
def test_a_set_that_only_tightens_never_judges_milder(data, given_):
    old, new = rules(*given_), rules(*data.draw(successors(given_)))
    assume(widening(old, new) is None)

    for order, facts in CASES:
        assert rank(new, order, facts) >= rank(old, order, facts), (order, facts)


@settings(quick, max_examples=30 * THOROUGH)
@given(st.data(), rule_of("contract-allowlist"), st.booleans())
def test_an_allowlist_that_only_tightens_never_judges_milder(data, allowlist, with_limit):
    limit = [rule("spending-limit", {"maxPerDay": "9"})] if with_limit else []
    old, new = rules(*limit, allowlist), rules(*limit, data.draw(alter(allowlist)))
    assume(widening(old, new) is None)

    for order, facts in CASES:
        assert rank(new, order, facts) >= rank(old, order, facts), (order, facts)


@quick
@given(sets, st.lists(rule_drawn, max_size=2), orders, facts_drawn)
def test_without_demanding_hard_rules_the_first_may_be_added(given_, added, order, facts):
    facts = msgspec.structs.replace(facts, empty_policy="allow")
    old, new = rules(*given_), rules(*given_, *added)

    if widening(old, new, empty_policy="allow") is None:
        assert rank(new, order, facts) >= rank(old, order, facts)


@quick
@given(sets)
def test_the_same_set_loosens_nothing(given_):
    assert widening(rules(*given_), rules(*given_)) is None


@quick
@given(sets)
def test_reading_the_stored_form_again_changes_nothing(given_):
    first = rules(*given_)
    stored = msgspec.json.decode(msgspec.json.encode([wire(one) for one in first]), type=list[PolicyRule])
    again = parse(stored, lambda: "never")

    assert again == first
    assert [canonical(rule.config) for rule in stored] == [one.config for one in first]


@quick
@given(st.lists(limits, max_size=4), orders, facts_drawn)
def test_a_second_evaluator_agrees_on_limits_thresholds_and_cover(given_, order, facts):
    facts = msgspec.structs.replace(facts, empty_policy="allow")

    assert judge(rules(*given_), order, facts).decision == decide(given_, order, facts)


@quick
@given(st.tuples(rule_of("auto-approve-threshold"), sets), st.data(), orders, facts_drawn)
def test_a_refusal_is_put_down_to_what_refuses_it_approved_or_not(given_, data, order, facts):
    """The caller is told of that result: what only asks a person would be the wrong thing to mend."""
    asks, others = given_
    parsed = rules(asks, *others)
    named = data.draw(st.lists(st.sampled_from([one.id for one in parsed]), max_size=2)) if parsed else []
    for verdict, again in (
        (judge(parsed, order, facts), judge(parsed, order, msgspec.structs.replace(facts, approving=True))),
        (
            narrow(parsed, order, facts, named),
            narrow(parsed, order, msgspec.structs.replace(facts, approving=True), named),
        ),
    ):
        assert (verdict.refused_by is not None) == (verdict.decision == "refuse")
        if verdict.refused_by is not None:
            still = {(one.type, one.policy_id) for one in again.results if not one.passed}
            assert (verdict.refused_by.type, verdict.refused_by.policy_id) in still


@quick
@given(sets, orders, facts_drawn)
def test_only_failed_results_hold_an_order_back(given_, order, facts):
    verdict = judge(rules(*given_), order, facts)

    assert (verdict.decision == "sign") == all(result.passed for result in verdict.results)
    assert sum(rule.enabled for rule in given_) <= len(verdict.results)
    assert all(result.reason for result in verdict.results)
