"""The source of a rule after the agent's own token sent a set: the tenant only where its rules hold all of it."""

import msgspec
import pytest

from custody.policies.rules import wire
from custody.policies.sources import set_by_agent, split_type, stored_type
from tests.rules.policies.makers import ALICE, BOB, TOKEN_CONTRACT, rule, rules


def list_rule(*addresses, **config):
    return rule("approved-addresses", {"addresses": list(addresses), **config})


BOTH = list_rule(ALICE, BOB)


@pytest.mark.parametrize(
    ("old", "new", "by_agent"),
    [
        ([BOTH], BOTH, False),
        ([BOTH], list_rule(ALICE), False),
        ([BOTH], list_rule(BOB, mode="blacklist"), True),
        ([BOTH], list_rule(ALICE, TOKEN_CONTRACT), True),
        ([], list_rule(ALICE), True),
        ([list_rule(ALICE, BOB, mode="blacklist")], list_rule(ALICE, mode="blacklist"), True),
        ([rule("approved-addresses", {"addresses": [ALICE]}, enabled=False)], list_rule(ALICE), True),
        ([rule("spending-limit", {"maxPerDay": "5"})], rule("spending-limit", {"maxPerDay": "5"}), False),
        ([rule("spending-limit", {"maxPerDay": "5"})], rule("spending-limit", {"maxPerDay": "4"}), True),
    ],
)
def test_a_rule_is_the_tenants_where_the_tenants_rules_hold_all_of_it(old, new, by_agent):
    (found,) = set_by_agent(rules(*old), rules(new))

    assert found.by_agent is by_agent


def test_rules_set_by_the_agent_stay_the_agents_when_sent_again():
    set_ = set_by_agent(rules(BOTH), rules(BOTH, list_rule(TOKEN_CONTRACT)))

    for _ in range(2):
        set_ = set_by_agent(set_, rules(BOTH, list_rule(TOKEN_CONTRACT)))
        assert [one.by_agent for one in set_] == [False, True]
    assert [split_type(stored_type(one)) for one in set_] == [
        ("approved-addresses", False),
        ("approved-addresses", True),
    ]


def test_only_a_rule_of_the_same_type_holds_another_and_a_disabled_one_a_disabled_one():
    contracts = rule("contract-allowlist", {"contracts": []})
    (other,) = set_by_agent(rules(BOTH), rules(contracts))
    assert other.by_agent
    off = msgspec.structs.replace(BOTH, enabled=False)
    assert [one.by_agent for one in set_by_agent(rules(off), rules(off))] == [False]
    assert [one.by_agent for one in set_by_agent(rules(BOTH), rules(off))] == [False]
    assert [one.by_agent for one in set_by_agent(rules(off), rules(BOTH))] == [True]


def test_a_rule_that_the_agent_set_says_so_on_the_wire():
    (found,) = set_by_agent((), rules(BOTH))
    assert wire(found).source == "agent"
    assert wire(msgspec.structs.replace(found, by_agent=False)).source is msgspec.UNSET
    assert wire(found) == msgspec.structs.replace(wire(rules(BOTH)[0]), id=found.id, source="agent")
