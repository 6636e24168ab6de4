"""Rules that a signer names: they bind besides the enabled ones, and never let anything through."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from custody.chains.evm.family import EVM_NATIVE
from custody.policies.judge import judge
from custody.policies.narrow import SIGNER_POLICY, narrow
from tests.fixtures.thorough import THOROUGH
from tests.rules.policies.drawn import CASES, sets
from tests.rules.policies.makers import BOB, NOON, TOKEN, facts, native, rule, rules, token_call

RANK = {"sign": 0, "queue": 1, "refuse": 2}
LIMIT = rule("spending-limit", {"maxPerTx": "10", "maxPerDay": "100"}, id="limit")


def off(type_, config, id):
    return rule(type_, config, enabled=False, id=id)


SMALLER = off("spending-limit", {"maxPerTx": "5", "maxPerDay": "100"}, "smaller")
ASK = off("auto-approve-threshold", {"threshold": "3"}, "ask")
TOKENS = off("spending-limit", {"maxPerDay": "100", "asset": TOKEN}, "tokens")
RARELY = off("rate-limit", {"maxTxPerHour": 1}, "rarely")
ONLY_BOB = off("approved-addresses", {"addresses": [BOB], "mode": "whitelist"}, "only-bob")


def decision(given_, order, named, **changes):
    return narrow(rules(*given_), order, facts(**changes), named).decision


def test_a_disabled_rule_binds_only_where_it_is_named():
    assert decision([LIMIT, SMALLER], native(7), []) == "sign"
    assert decision([LIMIT, SMALLER], native(7), ["smaller"]) == "refuse"
    assert decision([LIMIT, SMALLER], native(5), ["smaller"]) == "sign"


def test_a_soft_rule_that_is_named_asks_a_person():
    assert decision([LIMIT, ASK], native(4), ["ask"]) == "queue"
    assert decision([LIMIT, ASK], native(3), ["ask"]) == "sign"
    assert decision([LIMIT, ASK], native(4), ["ask"], approving=True) == "sign"


def test_a_refusal_stays_one_when_a_soft_rule_is_named():
    assert decision([LIMIT, ASK], native(11), ["ask"]) == "refuse"


def test_an_enabled_rule_that_is_named_is_judged_once():
    assert narrow(rules(LIMIT), native(11), facts(), ["limit"]) == judge(rules(LIMIT), native(11), facts())


def test_nothing_named_is_what_the_judge_says():
    given_ = rules(SMALLER, LIMIT, ASK)

    assert narrow(given_, token_call(7), facts(), ()) == judge(given_, token_call(7), facts())


def test_results_stand_in_stored_order_and_what_names_no_rule_behind_them():
    verdict = narrow(rules(SMALLER, LIMIT, ASK, ONLY_BOB), token_call(1), facts(), ["only-bob", "smaller", "gone"])

    assert [(one.policy_id, one.type) for one in verdict.results] == [
        ("smaller", "spending-limit"),
        ("limit", "spending-limit"),
        ("only-bob", "approved-addresses"),
        (None, "uncovered-effect"),
        (None, "signer-policy"),
    ]


def test_a_named_rule_that_is_gone_refuses_and_says_which():
    verdict = narrow(rules(LIMIT), native(1), facts(), ["gone", "limit", "also-gone"])

    assert verdict.decision == "refuse"
    assert [(one.type, one.passed) for one in verdict.results] == [("spending-limit", True), (SIGNER_POLICY, False)]
    assert "also-gone, gone;" in verdict.results[-1].reason


def test_many_rules_that_are_gone_make_one_short_sentence():
    result = narrow(rules(LIMIT), native(1), facts(), [f"gone-{n}" for n in range(9)]).results[-1]

    assert "gone-0, gone-1, gone-2 and 6 more;" in result.reason


def test_a_named_limit_on_a_token_does_not_cover_the_token():
    enabled = rule("spending-limit", TOKENS.config, id="tokens")

    assert decision([LIMIT, TOKENS], token_call(1), []) == "queue"
    assert decision([LIMIT, TOKENS], token_call(1), ["tokens"]) == "queue"
    # The control: enabling the named rule instead would have signed.
    assert judge(rules(LIMIT, enabled), token_call(1), facts()).decision == "sign"


def test_a_named_rule_is_not_the_hard_rule_that_a_deployment_wants():
    assert decision([SMALLER], native(1), ["smaller"], empty_policy="deny") == "refuse"
    assert judge(rules(LIMIT), native(1), facts(empty_policy="deny")).decision == "sign"


def test_a_named_limit_reads_the_spend_of_the_wallet():
    assert decision([off("spending-limit", {"maxPerDay": "10"}, "day")], native(1), ["day"], day=10) == "refuse"


def test_only_full_windows_say_when_to_come_again():
    hourly = rule("rate-limit", {"maxTxPerHour": 5}, id="hourly")
    full = facts(orders_last_hour=5, minutes=[(int((NOON - timedelta(minutes=10)).timestamp()), 5)])
    busy = facts(orders_last_hour=1, minutes=[(int((NOON - timedelta(minutes=30)).timestamp()), 1)])

    assert narrow(rules(hourly, RARELY), native(1), full, ["rarely"]).room is not None
    assert narrow(rules(hourly, RARELY), native(1), busy, ["rarely"]).room.limit == 1
    assert narrow(rules(hourly, RARELY, ONLY_BOB), native(1), full, ["rarely", "only-bob"]).room is None
    assert narrow(rules(hourly, ONLY_BOB), native(1), full, ["only-bob"]).room is None
    assert narrow(rules(hourly, RARELY), native(1), busy, ["rarely", "gone"]).room is None
    assert narrow(rules(LIMIT, RARELY), native(11), busy, ["rarely"]).room is None


def test_an_alert_is_for_orders_that_are_signed():
    alerting = rule("spending-limit", {"maxPerDay": "100", "alertPercents": [50]}, id="alerting")

    assert narrow(rules(alerting, SMALLER), native(60), facts(), []).alerts
    assert narrow(rules(alerting, SMALLER), native(60), facts(), ["smaller"]).alerts == ()


def test_one_hard_rule_of_several_that_fail_refuses():
    for named in (["ask", "smaller"], ["smaller", "ask"]):
        assert decision([LIMIT, ASK, SMALLER], native(7), named) == "refuse"
        assert decision([LIMIT, SMALLER, ASK], native(7), named) == "refuse"


def test_a_soft_rule_that_fails_leaves_it_a_matter_of_full_windows():
    minutes = [(int((NOON - timedelta(minutes=30)).timestamp()), 1)]
    busy = facts(orders_last_hour=1, minutes=minutes, orders_last_day=1, hours=minutes)
    daily = off("rate-limit", {"maxTxPerDay": 1}, "daily")
    alone = narrow(rules(LIMIT, RARELY), native(4), busy, ["rarely"]).room
    assert alone is not None
    assert narrow(rules(LIMIT, ASK, RARELY), native(4), busy, ["rarely", "ask"]).room == alone
    # Of two the one that has room last.
    last = narrow(rules(LIMIT, daily), native(4), busy, ["daily"]).room
    assert last.seconds > alone.seconds
    for two in ((RARELY, daily), (daily, RARELY)):
        assert narrow(rules(LIMIT, *two), native(4), busy, ["rarely", "daily"]).room == last


def test_a_named_rule_says_why_and_leaves_the_alerts_of_what_is_signed():
    alerting = rule("spending-limit", {"maxPerDay": "100", "alertPercents": [50]}, id="alerting")
    set_ = rules(alerting, off("spending-limit", {"maxPerTx": "60"}, "larger"))
    verdict = narrow(set_, native(60), facts(), ["larger"])
    assert verdict.alerts == judge(set_, native(60), facts()).alerts != ()
    assert [one.reason for one in verdict.results if one.policy_id == "larger"] == ["60 wei is within the limits"]


def test_charges_are_those_of_the_order():
    assert narrow(rules(LIMIT, ASK), native(4), facts(), ["ask"]).charges[EVM_NATIVE] == 4


@settings(max_examples=40 * THOROUGH)
@given(st.data(), sets)
def test_naming_rules_is_never_milder(data, given_):
    set_ = rules(*given_)
    named = [one.id for one in set_ if data.draw(st.booleans())] + ["gone"] * data.draw(st.sampled_from((0, 0, 0, 1)))

    for order, seen in CASES:
        before, after = judge(set_, order, seen), narrow(set_, order, seen, named)
        assert RANK[after.decision] >= RANK[before.decision], (order, seen)
        assert set(before.results) <= set(after.results)
        assert (after.decision == "sign") == all(result.passed for result in after.results)
        assert after.charges == before.charges


@settings(max_examples=40 * THOROUGH)
@given(st.data(), sets)
def test_each_named_rule_has_its_result_and_its_refusal(data, given_):
    set_ = rules(*given_)
    named = [one.id for one in set_ if data.draw(st.booleans())]

    for order, seen in CASES[::7]:
        verdict = narrow(set_, order, seen, named)
        said = [result.policy_id for result in verdict.results if result.policy_id is not None]
        assert said == [one.id for one in set_ if one.enabled or one.id in named]
        for one in set_:
            if one.id in named and not one.terms.check(order, seen)[0]:
                assert verdict.decision == "refuse" if one.hard else verdict.decision != "sign"


def test_a_named_hard_rule_refuses_what_an_enabled_one_only_asks_about():
    asks = rule("auto-approve-threshold", {"threshold": "3"}, id="asks")
    assert decision([LIMIT, asks, SMALLER], native(7), []) == "queue"
    assert decision([LIMIT, asks, SMALLER], native(7), ["smaller"]) == "refuse"
    assert decision([LIMIT, asks, SMALLER], native(7), ["smaller"], approving=True) == "refuse"
