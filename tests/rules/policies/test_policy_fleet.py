"""Policy sets by the pure judge: own rules only tighten, the tenant's cover nothing, and what counts for all agents."""

import msgspec
import pytest

from custody.chains.types import Effect, Subject
from custody.policies.fleet import SharedCharge, judge_all, shared_charges
from custody.policies.rules import ParsedRule, parse_set
from custody.policies.tighten import widening
from custody.policies.types import Decision, Spend
from tests.rules.policies.makers import ALICE, BOB, NOON, TOKEN, evm, facts, native, rule, rules, typed_rules

COIN = "evm:native"
SHARED = {"maxPerDay": "100", "scope": "set"}


def in_set(policy_set, *given) -> tuple[ParsedRule, ...]:
    numbers = iter(range(1000))
    parsed = parse_set(typed_rules(*given), lambda: f"{policy_set}-{next(numbers)}")
    return tuple(msgspec.structs.replace(one, policy_set=policy_set) for one in parsed)


def token(amount) -> Subject:
    return evm(Effect("transfer", TOKEN, amount, BOB, ALICE))


def limit(most=100, asset=None, **more):
    return rule("spending-limit", {"maxPerDay": str(most)} | ({"asset": asset} if asset else {}) | more)


CASES = [
    # Of own rules, a set's and the tenant's: each binds.
    ([limit(5)], [limit()], [], native(6), "refuse"),
    ([limit()], [limit(5)], [], native(6), "refuse"),
    ([limit()], [limit()], [limit(5)], native(6), "refuse"),
    ([limit()], [limit()], [limit()], native(6), "sign"),
    # A set alone must cover what its agents do: own rules that cover more loosen nothing.
    ([limit(100, TOKEN)], [limit()], [], token(6), "queue"),
    ([], [limit(), limit(100, TOKEN)], [], token(6), "sign"),
    ([limit()], [limit(), limit(100, TOKEN)], [], token(6), "sign"),
    # An empty set asks for nothing.
    ([limit(100, TOKEN)], [], [], token(6), "sign"),
    # The tenant's rules cover nothing, and ask for no cover.
    ([limit(100, TOKEN)], [], [limit()], token(6), "sign"),
    ([limit()], [], [limit(100, TOKEN)], token(6), "queue"),
    ([rule("approved-addresses", {"addresses": [BOB]})], [limit()], [], native(6), "refuse"),
    ([limit()], [], [rule("approved-addresses", {"addresses": [BOB]})], native(6), "refuse"),
    ([limit()], [], [rule("approved-addresses", {"addresses": [ALICE]})], native(6), "sign"),
    ([limit()], [], [rule("auto-approve-threshold", {"threshold": "5"})], native(6), "queue"),
    ([limit()], [rule("auto-approve-threshold", {"threshold": "5"})], [], native(6), "queue"),
]


@pytest.mark.parametrize(("own", "policy_set", "every", "order", "decision"), CASES)
def test_the_strictest_of_three_decides(own, policy_set, every, order, decision: Decision):
    given = (*rules(*own), *in_set("team", *policy_set), *in_set("tenant", *every))

    assert judge_all(given, order, facts(), ()).decision == decision


def test_own_rules_alone_are_judged_as_ever():
    assert judge_all(rules(limit()), native(6), facts(), ()).decision == "sign"
    assert judge_all(rules(limit()), token(6), facts(), ()).decision == "queue"


def test_a_shared_limit_counts_what_all_agents_spent_and_no_other():
    given = (*in_set("team", rule("spending-limit", SHARED)), *rules(limit(50)))
    for policy_set, spent, decision in (("team", 95, "refuse"), ("team", 94, "sign"), ("other", 95, "sign")):
        known = facts(shared={policy_set: {COIN: Spend(spent, spent)}})
        assert judge_all(given, native(6), known, ()).decision == decision


def test_a_charge_for_all_agents_has_the_tightest_limits_on_it():
    given = (
        *in_set("team", rule("spending-limit", SHARED), rule("spending-limit", SHARED | {"maxPerDay": "7"})),
        *in_set("tenant", rule("spending-limit", {"maxTotal": "9", "maxPerWeek": "8", "scope": "set"})),
        *in_set("off", rule("spending-limit", SHARED, enabled=False)),
        *in_set("each", limit(3)),
        *rules(limit(3)),
    )

    found = shared_charges(given, native(6), {COIN: 6, TOKEN: 5})

    assert found == (
        SharedCharge("team", COIN, 6, per_day=7),
        SharedCharge("tenant", COIN, 6, per_week=8, total=9),
        # So that it has missed nothing when it is enabled again.
        SharedCharge("off", COIN, 6),
    )
    assert shared_charges(given, native(6), {TOKEN: 5}) == ()


def test_alerts_are_told_of_what_all_agents_spent():
    given = in_set("tenant", rule("spending-limit", SHARED))
    (alert,) = judge_all(given, native(6), facts(shared={"tenant": {COIN: Spend(79, 79)}}), ()).alerts
    assert (alert.spent, alert.percent) == (85, 80)


def test_naming_a_set_is_loosening_and_a_rule_beside_it_is_not():
    one, other = (rule("policy-set", {"policySet": f"{n}" * 8 + "-0000-4000-8000-000000000000"}) for n in (1, 2))

    assert widening(rules(limit()), rules(limit(), one)) is not None
    assert widening(rules(one), rules(other)) is not None
    assert widening(rules(one), rules()) is not None
    assert widening(rules(one), rules(one, limit()), empty_policy="allow") is None
    assert widening(rules(limit()), rules(limit(), limit(5, TOKEN))) is not None


def test_a_limit_on_all_agents_and_one_on_each_are_no_bound_of_each_other():
    shared, each = in_set("team", rule("spending-limit", SHARED)), in_set("team", limit(5))
    assert not each[0].tightens(shared[0])
    assert not shared[0].tightens(each[0])
    assert in_set("team", rule("spending-limit", SHARED | {"maxPerDay": "5"}))[0].tightens(shared[0])


def test_an_ended_shared_limit_lets_nothing_pass():
    given = in_set("team", rule("spending-limit", SHARED | {"until": NOON.isoformat()}))
    assert judge_all(given, native(1), facts(), ()).decision == "refuse"
