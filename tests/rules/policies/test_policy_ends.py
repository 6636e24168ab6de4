"""Rules that end: from that moment on they let nothing pass, and so an end never loosens a set."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.kit import clock
from custody.policies.judge import judge
from custody.policies.narrow import narrow
from custody.policies.sources import set_by_agent
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy
from tests.rules.policies.drawn import CASES, CONFIGS, rule_drawn
from tests.rules.policies.makers import ALICE, NOON, Sent, facts, native, rule, rules

RANK = {"sign": 0, "queue": 1, "refuse": 2}
END = NOON + timedelta(hours=1)
PERSON, KEY = "0b0e4f56-5ac9-4c61-8a35-1b5a2a9c5b57", "ab" * 32
ENDING = {
    "spending-limit": {"maxPerDay": "1000"},
    "approved-addresses": {"addresses": [ALICE]},
    "auto-approve-threshold": {"threshold": "1000"},
    "time-window": {"allowedDays": list(range(7))},
    "rate-limit": {"maxTxPerHour": 9},
    "allowed-chains": {"chains": [1]},
    "contract-allowlist": {"contracts": []},
    "approval-quorum": {"threshold": 1, "approvers": [{"userId": PERSON, "keys": [KEY]}], "above": "1000"},
    "message-allowlist": {"siweDomains": ["example.com"]},
    "new-recipient": {"known": [ALICE]},
    "delay": {"minutes": 1, "above": "1000"},
    "circuit-breaker": {"minutes": 1, "refused": 1},
    "external-check": {
        "url": "https://check.example.com/",
        "publicKeys": ["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="],
    },
}


def ending(kind: str, at=END) -> Sent:
    return rule(kind, ENDING[kind] | {"until": clock.iso(at)}, id=kind)


@pytest.mark.parametrize("kind", ENDING)
def test_a_rule_judges_until_its_end_and_then_lets_nothing_pass(kind):
    set_ = rules(ending(kind))
    before, at_end = facts(now=END - timedelta(microseconds=1)), facts(now=END)

    assert judge(set_, native(5), before).decision == judge(rules(rule(kind, ENDING[kind])), native(5), before).decision
    assert judge(set_, native(5), at_end).decision == ("refuse" if set_[0].hard else "queue")


@pytest.mark.parametrize(
    "kind", ["auto-approve-threshold", "message-allowlist", "new-recipient", "delay", "circuit-breaker"]
)
def test_a_person_decides_what_a_soft_rule_decided_before_its_end(kind):
    verdict = judge(rules(ending(kind)), native(5), facts(now=END, approving=True))

    assert verdict.decision == "sign"


def test_an_ended_quorum_needs_votes_for_every_order_and_takes_them():
    set_ = rules(ending("approval-quorum"))

    assert judge(set_, native(5), facts(now=NOON)).decision == "sign"
    assert judge(set_, native(5), facts(now=END, approving=True)).decision == "queue"
    assert judge(set_, native(5), facts(now=END, approving=True, votes={(PERSON, KEY)})).decision == "sign"


def test_waiting_does_not_help_against_an_ended_rate_limit():
    full = facts(now=END, orders_last_hour=9, orders_last_day=9, minutes=[(int(NOON.timestamp()), 9)])

    assert judge(rules(rule("rate-limit", ENDING["rate-limit"])), native(5), full).room is not None
    assert judge(rules(ending("rate-limit")), native(5), full).room is None


def test_a_rule_that_only_a_signer_names_ends_too():
    named = rules(msgspec.structs.replace(ending("spending-limit"), enabled=False))

    assert narrow(named, native(5), facts(now=NOON), ["spending-limit"]).decision == "sign"
    assert narrow(named, native(5), facts(now=END), ["spending-limit"]).decision == "refuse"


@given(rule_drawn.filter(lambda one: one.enabled), st.integers(0, 200))
def test_an_end_never_makes_a_verdict_milder(given_, hours):
    end = clock.iso(NOON + timedelta(hours=hours))
    without = msgspec.structs.replace(given_, config=given_.config | {"until": None})
    ends = msgspec.structs.replace(given_, config=given_.config | {"until": end})

    for order, known in CASES:
        assert RANK[judge(rules(ends), order, known).decision] >= RANK[judge(rules(without), order, known).decision]


def test_an_earlier_end_tightens_and_a_later_one_or_none_loosens():
    old, earlier, later = (rules(ending("rate-limit", END + timedelta(hours=more))) for more in (0, -1, 1))
    never = rules(rule("rate-limit", ENDING["rate-limit"], id="rate-limit"))

    assert widening(old, old) is widening(old, earlier) is widening(never, old) is None
    assert None not in (widening(old, later), widening(old, never))


def test_a_list_with_a_later_end_is_no_longer_the_tenants():
    old, earlier, later = (rules(ending("approved-addresses", END + timedelta(hours=more))) for more in (0, -1, 1))

    assert [set_by_agent(old, new)[0].by_agent for new in (old, earlier, later)] == [False, False, True]


@pytest.mark.parametrize(
    "text", ["tomorrow", "2027-01-01", "2027-01-01T00:00:00", "2027-02-30T00:00:00Z", "1800000000"]
)
def test_an_end_that_is_no_moment_is_refused(text):
    with pytest.raises(InvalidPolicy, match="`until` must be a date and time with a zone"):
        rules(rule("rate-limit", {"maxTxPerHour": 1, "until": text}))


def test_every_type_is_tried_here():
    assert set(ENDING) >= set(CONFIGS)
