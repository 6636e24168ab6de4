"""`approval-quorum`: whose votes count, for which orders, and what the quorums of a set say together."""

import msgspec
import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect
from custody.policies.judge import judge
from custody.policies.quorum import enabled_quorums, is_pinned, new_quorums, standing, without_quorums
from custody.policies.types import InvalidPolicy
from tests.rules.policies.makers import ALICE, BOB, TOKEN, approval_call, evm, facts, native, rule, rules, token_call

ANNA, BERT, CARL = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
KEYS = {person: [f"{number}{letter}" * 32 for letter in "ab"] for number, person in enumerate((ANNA, BERT, CARL))}
EVERYBODY = frozenset((person, keys[0]) for person, keys in KEYS.items())


def quorum(threshold, *people, enabled=True, id=None, keys=KEYS, **config):
    approvers = [{"userId": person, "keys": keys[person]} for person in people]
    return rule("approval-quorum", {"threshold": threshold, "approvers": approvers, **config}, enabled=enabled, id=id)


def votes(*shown):
    return frozenset((person, KEYS[person][number]) for person, number in shown)


@pytest.mark.parametrize(
    ("given_", "decision"),
    [
        (votes(), "queue"),
        (votes((ANNA, 0)), "queue"),
        (votes((ANNA, 0), (BERT, 0)), "sign"),
        # By their second keys as well, and not twice by one person.
        (votes((ANNA, 1), (BERT, 1)), "sign"),
        (votes((ANNA, 0), (ANNA, 1)), "queue"),
        # Carl is nobody here, and Anna's key is no key of Bert.
        (votes((ANNA, 0), (CARL, 0)), "queue"),
        (frozenset({(ANNA, KEYS[ANNA][0]), (BERT, KEYS[ANNA][1])}), "queue"),
    ],
)
def test_an_order_waits_until_enough_of_the_named_people_voted_by_their_keys(given_, decision):
    verdict = judge(rules(quorum(2, ANNA, BERT)), native(5), facts(votes=given_))

    assert verdict.decision == decision
    counted = len({person for person, key in given_ if key in KEYS[person] and person != CARL})
    assert verdict.results[0].reason == f"{counted} of 2 votes needed, from 2 named approvers"


def test_an_approval_of_the_queue_is_no_vote():
    assert judge(rules(quorum(1, ANNA)), native(5), facts(approving=True)).decision == "queue"


@pytest.mark.parametrize(
    ("config", "order", "decision"),
    [
        ({"above": "10"}, native(10), "sign"),
        ({"above": "10"}, native(11), "queue"),
        ({"above": "0"}, native(1), "queue"),
        ({"above": "10", "asset": TOKEN}, token_call(10), "sign"),
        ({"above": "10", "asset": TOKEN}, token_call(11), "queue"),
        ({"above": "10", "asset": TOKEN}, native(11), "sign"),
        ({"above": "10"}, token_call(11), "sign"),
        # No amount judges these, whatever the asset: they need votes.
        ({"above": "10"}, approval_call(2**128), "queue"),
        ({"above": "10"}, evm(Effect("transfer", TOKEN, 1, BOB, ALICE, nft=True)), "queue"),
        ({"above": "10"}, evm(Effect("unread", None, 0, BOB, ALICE)), "queue"),
        ({"above": "10"}, evm(Effect("transfer", EVM_NATIVE, 1, BOB, ALICE), Effect("unread", None, 0, BOB)), "queue"),
        ({"above": None}, native(1), "queue"),
    ],
)
def test_only_orders_above_an_amount_need_votes_where_it_is_given(config, order, decision):
    result = judge(rules(quorum(1, ANNA, **config)), order, facts(uncovered="allow")).results[0]

    assert result.type == "approval-quorum"
    assert result.passed is (decision == "sign")


def test_an_order_below_says_so():
    result = judge(rules(quorum(1, ANNA, above="10", asset=TOKEN)), token_call(3), facts()).results[0]

    assert result.reason == f"3 units of {TOKEN} is at or below 10 units, so no vote is needed"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (quorum(1, ANNA, BERT), quorum(2, ANNA, BERT)),
        (quorum(1, ANNA, BERT), quorum(1, ANNA)),
        (quorum(1, ANNA), quorum(1, ANNA, keys={ANNA: KEYS[ANNA][:1]})),
        (quorum(1, ANNA, above="10"), quorum(1, ANNA)),
        (quorum(1, ANNA, above="10"), quorum(1, ANNA, above="9")),
        # Votes for every order are more than votes for orders of one asset, whichever it is.
        (quorum(1, ANNA, above="10", asset=TOKEN), quorum(1, ANNA)),
        (quorum(1, ANNA, above="10", asset=TOKEN), quorum(1, ANNA, above="9", asset=TOKEN)),
    ],
)
def test_more_votes_out_of_fewer_keys_for_more_orders_tighten_and_the_way_back_loosens(old, new):
    before, after = (rules(one)[0].terms for one in (old, new))

    assert after.tightens(before)
    assert after.tightens(after)
    assert not before.tightens(after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (quorum(1, ANNA), quorum(1, BERT)),
        (quorum(1, ANNA), quorum(1, ANNA, keys={ANNA: [KEYS[ANNA][0], KEYS[BERT][0]]})),
        (quorum(1, ANNA), quorum(2, ANNA, BERT)),
        (quorum(2, ANNA, BERT), quorum(1, ANNA)),
        (quorum(1, ANNA, above="10"), quorum(1, ANNA, above="10", asset=TOKEN)),
        (quorum(1, ANNA, above="10", asset=TOKEN), quorum(1, ANNA, above="9")),
    ],
)
def test_other_people_keys_or_assets_are_no_tightening(old, new):
    assert not rules(new)[0].terms.tightens(rules(old)[0].terms)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        (quorum(1, ANNA, ANNA, keys={ANNA: KEYS[ANNA]}), "one person twice"),
        (quorum(1, ANNA, BERT, keys={ANNA: KEYS[ANNA], BERT: KEYS[ANNA][:1]}), "one key twice"),
        (quorum(1, ANNA, keys={ANNA: [KEYS[ANNA][0]] * 2}), "one key twice"),
        (quorum(3, ANNA, BERT), "only 2 approvers"),
        (quorum(1, ANNA, asset=TOKEN), "send `above` too"),
        (quorum(1, ANNA, above=None, asset=TOKEN), "send `above` too"),
        (quorum(1, ANNA, above="5", asset="nothing"), "`asset`"),
        (quorum(1, ANNA, above=str(2**256)), "`above` must be at most"),
        (quorum(0, ANNA), "Rule 1"),
        (quorum(17, ANNA), "Rule 1"),
        (quorum(1), "Rule 1"),
        (quorum(1, ANNA, keys={ANNA: []}), "Rule 1"),
    ],
)
def test_a_quorum_that_can_never_be_met_or_meant_is_not_accepted(given_, says):
    with pytest.raises(InvalidPolicy, match=says):
        rules(given_)


@pytest.mark.parametrize("config", [{}, {"above": None, "asset": None}, {"above": "5", "asset": None}])
def test_a_quorum_of_all_who_are_named_is_accepted(config):
    assert rules(quorum(2, ANNA, BERT, **config))[0].terms.threshold == 2


def test_sixteen_people_with_eight_keys_each_is_the_most():
    people = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(17)]
    keys = {person: [f"{number:02x}{key:02x}" * 16 for key in range(9)] for number, person in enumerate(people)}
    most = {person: listed[:8] for person, listed in keys.items()}

    assert len(rules(quorum(16, *people[:16], keys=most))[0].terms.approvers) == 16
    with pytest.raises(InvalidPolicy):
        rules(quorum(1, *people, keys=most))
    with pytest.raises(InvalidPolicy):
        rules(quorum(1, people[0], keys=keys))


SET = rules(
    quorum(1, ANNA, BERT, id="one"),
    quorum(2, BERT, CARL, id="two"),
    quorum(3, ANNA, BERT, CARL, id="off", enabled=False),
    rule("rate-limit", {"maxTxPerHour": 5}, id="rate"),
    rule("rate-limit", {"maxTxPerHour": 4}, id="rate-off", enabled=False),
)


def test_the_quorum_that_lacks_the_most_says_where_an_order_stands():
    assert standing(SET, frozenset()) == (0, 2)
    assert standing(SET, votes((ANNA, 0))) == (0, 2)
    assert standing(SET, votes((BERT, 0))) == (1, 2)
    assert standing(SET, EVERYBODY) == (2, 2)
    assert standing(SET, votes((ANNA, 0), (ANNA, 1), (BERT, 0))) == (1, 2)
    assert standing(rules(quorum(1, ANNA), quorum(2, BERT, CARL)), votes((BERT, 0), (CARL, 0))) == (0, 1)
    assert standing(SET[2:], EVERYBODY) == (0, 0)


def test_a_vote_is_for_those_whom_some_enabled_quorum_names_by_that_key():
    quorums = enabled_quorums(SET)

    assert [one.threshold for one in quorums] == [1, 2]
    assert is_pinned(quorums, ANNA, KEYS[ANNA][1])
    assert is_pinned(quorums, CARL, KEYS[CARL][0])
    assert not is_pinned(quorums, ANNA, KEYS[BERT][0])
    assert not is_pinned(quorums[1:], ANNA, KEYS[ANNA][0])
    assert not is_pinned((), ANNA, KEYS[ANNA][0])


def test_breaking_quorums_disables_them_and_nothing_else():
    after = without_quorums(SET)

    assert [rule.enabled for rule in after] == [False, False, False, True, False]
    assert [msgspec.structs.replace(rule, enabled=True) for rule in after] == [
        msgspec.structs.replace(rule, enabled=True) for rule in SET
    ]


def test_a_quorum_is_new_where_the_old_set_has_it_otherwise_or_not_at_all():
    off, other = (msgspec.structs.replace(SET[0], **changes) for changes in ({"enabled": False}, {"config": "{}"}))

    assert new_quorums(SET, SET) == []
    assert new_quorums([], SET) == list(SET[:3])
    assert new_quorums(SET, [off, other, msgspec.structs.replace(SET[3], config="{}")]) == [off, other]
    assert new_quorums([SET[0]], [msgspec.structs.replace(SET[0], id="renamed")]) == []
    assert new_quorums([msgspec.structs.replace(SET[3], config=SET[0].config)], [SET[0]]) == [SET[0]]
