"""Limits in dollars: what an order is worth, and what has no price goes to a person."""

from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.chains.units import Unit, Units
from custody.policies.dollars import worth_of
from custody.policies.judge import judge
from custody.policies.shares import shares
from custody.policies.types import Facts, Spend
from tests.rules.policies.makers import (
    ALICE,
    BOB,
    NOON,
    TOKEN,
    TOKEN_CONTRACT,
    approval_call,
    evm,
    native,
    permit,
    rent,
    rule,
    rules,
    token_call,
    unknown,
    unread_call,
)

COIN = "evm:1:native"
UNITS = Units({1: Unit("ETH", 18), 10: Unit("ETH", 18), 101: Unit("SOL", 9)}, {TOKEN: Unit("USDC", 6)})
PRICES = {COIN: Decimal("3000.10"), TOKEN: Decimal(1), "solana:native": Decimal(150), "bitcoin": Decimal(90_000)}
LIMIT = rule("spending-limit", {"maxPerDay": "100", "asset": "usd"})
THRESHOLD = rule("auto-approve-threshold", {"threshold": "100", "asset": "usd"})


def facts(worth, spent=0, **changes):
    return Facts(now=NOON, spend={"usd": Spend(spent, spent)}, worth=worth, **changes)


def decision(set_, order, given_):
    return judge(rules(*set_), order, given_).decision


@pytest.mark.parametrize(
    ("order", "worth"),
    [
        (native(10**18), {COIN: 3_000_100_000}),
        (native(1), {COIN: 1}),
        (token_call(7), {TOKEN: 7}),
        (approval_call(5), {TOKEN: 5}),
        (permit(5), {TOKEN: 5}),
        # Rent is of the coin, and counts with it.
        (rent(2_000_000), {"solana:native": 300_000}),
        # No price, and no decimals.
        (token_call(7, chain_id=10), {}),
        (evm(Effect("transfer", EVM_NATIVE, 5, BOB, ALICE), chain_id=10), {}),
        (approval_call(2**128), {}),
    ],
)
def test_an_order_is_worth_what_its_priced_assets_come_to_rounded_up(order, worth):
    found = worth_of(order, PRICES, UNITS)

    assert {name: amount for name, amount in found.items() if amount} == worth


@given(st.integers(0, 2**256 - 1), st.decimals(0, 10**18, places=11, allow_nan=False, allow_infinity=False))
def test_no_amount_and_no_price_is_rounded_anywhere_but_at_the_last_millionth(amount, price):
    exact = Fraction(amount) * Fraction(price) * 10**6 / 10**18

    found = worth_of(evm(Effect("transfer", EVM_NATIVE, amount, BOB, ALICE)), {COIN: price}, UNITS)[COIN]

    assert found - 1 < exact <= found


@pytest.mark.parametrize("name", ["ETH", "eth", "evm:native", "evm:10:native", "evm:1:NATIVE"])
def test_only_the_whole_name_of_an_asset_gives_it_a_price(name):
    assert worth_of(native(5), {name: Decimal(1)}, UNITS) == {}


def test_a_limit_in_dollars_counts_everything_that_moves_together():
    both = evm(Effect("transfer", EVM_NATIVE, 1, BOB, ALICE), Effect("transfer", TOKEN, 1, BOB, ALICE))
    worth = {COIN: 3, TOKEN: 2}

    assert decision([LIMIT], both, facts(worth, 95)) == "sign"
    assert decision([LIMIT], both, facts(worth, 96)) == "refuse"
    verdict = judge(rules(LIMIT), both, facts(worth, 76))
    assert verdict.charges["usd"] == 5
    assert [(alert.asset, alert.spent) for alert in verdict.alerts] == [("usd", 81)]


def test_a_refusal_tells_the_sums_in_dollars():
    verdict = judge(
        rules(rule("spending-limit", {"maxPerDay": "5000000", "asset": "usd"})), native(1), facts({COIN: 9_250_000})
    )

    assert verdict.results[0].reason.startswith("9.25 USD now and 0 USD in the last 24 hours")


def test_a_replaced_order_counts_the_larger_of_both_worths():
    taken = facts({COIN: 3}, floor={"usd": 5})

    assert judge(rules(LIMIT), native(1), taken).charges["usd"] == 5
    assert decision([LIMIT], native(1), msgspec.structs.replace(taken, spend={"usd": Spend(96, 96)})) == "refuse"


def test_a_threshold_in_dollars_asks_a_person_above_it():
    assert decision([THRESHOLD], native(1), facts({COIN: 100})) == "sign"
    assert decision([THRESHOLD], native(1), facts({COIN: 101})) == "queue"


OTHERWISE = rule("spending-limit", {"maxPerDay": "1000", "asset": TOKEN})
_ENTRY = {
    "address": TOKEN_CONTRACT,
    "unread": "allow",
    "constraints": {"0xa9059cbb": {"maxAmount": "9"}},
    "selectors": ["0xa9059cbb", "0xdeadbeef"],
}
LISTED = rule("contract-allowlist", {"contracts": [_ENTRY]})


@pytest.mark.parametrize("dollars", [LIMIT, THRESHOLD], ids=lambda one: one.type)
@pytest.mark.parametrize(
    ("order", "otherwise"),
    [
        (token_call(5), OTHERWISE),
        (token_call(5), LISTED),
        (permit(5), OTHERWISE),
        (approval_call(2**128), OTHERWISE),
        (permit(2**128), OTHERWISE),
        (unknown(), OTHERWISE),
        (unread_call(contract=TOKEN_CONTRACT), LISTED),
    ],
    ids=lambda one: getattr(one, "type", one.kind if hasattr(one, "kind") else None),
)
def test_an_asset_without_a_price_goes_to_a_person_whatever_else_names_it(dollars, order, otherwise):
    for uncovered, said in (("queue", "queue"), ("allow", "queue"), ("refuse", "refuse")):
        assert decision([dollars, otherwise], order, facts({}, uncovered=uncovered)) == said
    assert decision([dollars, otherwise], order, facts({}, approving=True)) == "sign"


def test_a_price_of_nothing_is_a_price_and_no_price_is_none():
    assert decision([LIMIT], token_call(5), facts({TOKEN: 0})) == "sign"
    assert decision([LIMIT], token_call(0), facts({TOKEN: 0})) == "sign"
    assert decision([LIMIT], native(0), facts({})) == "sign"
    assert decision([LIMIT], token_call(0), facts({})) == "queue"


def test_a_fee_that_counts_needs_a_price_and_another_one_does_not():
    fee = Effect("fee", "bitcoin", 5)
    order = Subject("bitcoin", "bitcoin", None, None, None, (fee,))

    assert decision([LIMIT], order, facts({})) == "queue"
    assert decision([LIMIT], order, facts({"bitcoin": 5})) == "sign"
    assert decision([LIMIT], native(0, fee=9), facts({})) == "sign"


def test_votes_above_an_amount_in_dollars_are_needed_for_what_has_no_price():
    quorum = rule(
        "approval-quorum",
        {
            "threshold": 1,
            "approvers": [{"userId": "0b0e4f56-5ac9-4c61-8a35-1b5a2a9c5b57", "keys": ["ab" * 32]}],
            "above": "100",
            "asset": "usd",
        },
    )

    assert decision([quorum], native(1), facts({COIN: 100})) == "sign"
    assert decision([quorum], native(1), facts({COIN: 101})) == "queue"
    assert decision([quorum], native(1), facts({})) == "queue"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 10**6))
def test_the_parts_of_a_batch_are_worth_what_the_whole_is(amounts, worth):
    parts = [native(amount) for amount in amounts]
    whole = {COIN: worth if sum(amounts) else 0, TOKEN: 3}

    found = shares(whole, parts)

    assert sum(one[COIN] for one in found) == whole[COIN]
    assert all(one[COIN] >= 0 for one in found)
