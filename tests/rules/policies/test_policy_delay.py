"""delay: what waits and for how long, what time alone does not let pass, and what is tighter."""

import pytest

from custody.chains.types import Effect
from custody.policies.judge import judge
from custody.policies.tighten import widening
from custody.policies.types import InvalidPolicy
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    TOKEN,
    approval_call,
    evm,
    facts,
    native,
    permit,
    rule,
    rules,
    token_call,
    typed_data,
    unread_call,
)
from tests.rules.policies.test_policy_message_allowlist import evm as message

UNBOUND = "it does what has no bound: a person must decide"
WAITS = "it is signed after 2 minutes unless somebody denies it"


def check(order, waited=0, approving=False, **config):
    (parsed,) = rules(rule("delay", {"minutes": 2, **config}))
    return parsed.terms.check(order, facts(waited=waited, approving=approving))


@pytest.mark.parametrize("order", [native(5), native(0), token_call(5), approval_call(5, BOB), evm(), typed_data()])
def test_every_order_waits_where_no_amount_is_named(order):
    assert check(order) == (False, WAITS)
    assert check(order, waited=119) == (False, WAITS)
    assert check(order, waited=120) == (True, "it waited 2 minutes, and nobody stopped it")
    assert check(order, approving=True) == (True, "a person approved it before the delay was over")


def test_an_order_up_to_an_amount_need_not_wait():
    small, large = native(5), native(6)

    assert check(small, above="5") == (True, "5 wei is at or below 5 wei: it need not wait")
    assert check(large, above="5") == (False, f"6 wei is above 5 wei: {WAITS}")
    assert check(large, waited=120, above="5")[0]
    # What counts another asset says nothing of this one.
    assert check(large, above="5", asset=TOKEN)[0]
    assert not check(token_call(6), above="5", asset=TOKEN)[0]


@pytest.mark.parametrize(
    "order",
    [
        approval_call(2**128),
        permit(2**200),
        unread_call(),
        message("hello"),
        evm(Effect("transfer", TOKEN, 1, BOB, ALICE, nft=True)),
    ],
)
@pytest.mark.parametrize("config", [{}, {"above": "9"}])
def test_time_alone_lets_nothing_pass_that_has_no_bound(order, config):
    assert check(order, waited=10**6, **config) == (False, UNBOUND)
    assert check(order, approving=True, **config) == (True, "it does what has no bound; a person approved it")


def test_taking_power_back_has_a_bound():
    back = Effect("approval", TOKEN, 2**128, BOB, spender=ALICE, unlimited=True, revokes=True)

    assert check(typed_data(back), waited=120)[0]


def test_the_rule_covers_nothing():
    limited = rules(rule("spending-limit", {"maxPerDay": "100"}), rule("delay", {"minutes": 2}))

    assert judge(limited, native(5), facts(waited=120)).decision == "sign"
    assert judge(limited, token_call(5), facts(waited=120)).decision == "queue"
    assert judge(limited[1:], token_call(5), facts(waited=120)).decision == "sign"


def test_a_rule_that_ended_lets_time_pass_nothing():
    ended = rules(rule("delay", {"minutes": 2, "until": "2020-01-01T00:00:00Z"}))

    assert judge(ended, native(5), facts(waited=10**6)).decision == "queue"


@pytest.mark.parametrize(
    ("old", "new", "is_tighter"),
    [
        ({"minutes": 2}, {"minutes": 2}, True),
        ({"minutes": 2}, {"minutes": 3}, True),
        ({"minutes": 2}, {"minutes": 1}, False),
        ({"minutes": 2}, {"minutes": 3, "above": "0"}, False),
        ({"minutes": 2, "above": "5"}, {"minutes": 2}, True),
        ({"minutes": 2, "above": "5"}, {"minutes": 2, "above": "4"}, True),
        ({"minutes": 2, "above": "5"}, {"minutes": 2, "above": "6"}, False),
        ({"minutes": 2, "above": "5", "asset": TOKEN}, {"minutes": 2, "above": "5"}, False),
        ({"minutes": 2, "above": "5", "asset": TOKEN}, {"minutes": 2, "above": "5", "asset": TOKEN}, True),
    ],
)
def test_longer_and_lower_is_tighter(old, new, is_tighter):
    found = widening(rules(rule("delay", old)), rules(rule("delay", new)), empty_policy="allow")

    assert (found is None) is is_tighter


def test_an_asset_without_an_amount_is_refused():
    with pytest.raises(InvalidPolicy, match="`asset` says what `above` counts"):
        rules(rule("delay", {"minutes": 2, "asset": TOKEN}))
