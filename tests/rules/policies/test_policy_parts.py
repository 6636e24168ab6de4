"""The coin of one EVM chain beside the coins of all: what counts, what is covered, what tightens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.chains.units import Unit, Units
from custody.policies.judge import judge
from custody.policies.moved import moves
from custody.policies.parts import add_parts, names, subtract_parts
from custody.policies.tighten import widening
from custody.policies.types import Alert, InvalidPolicy, Spend
from tests.rules.policies.makers import ALICE, evm, facts, rule, rules

POL = "evm:137:native"


def limit(asset, most="100", kind="maxPerDay"):
    return rule("spending-limit", {kind: most, "asset": asset})


def pays(amount, chain=137):
    return evm(Effect("transfer", EVM_NATIVE, amount, None, ALICE), chain_id=chain)


def decision(order, *given, **known):
    return judge(rules(*given), order, facts(**known)).decision


def test_a_limit_on_one_chain_judges_its_coin_alone():
    both = limit(POL), limit(EVM_NATIVE, "1000")

    assert [decision(pays(amount), *both) for amount in (100, 101)] == ["sign", "refuse"]
    assert [decision(pays(amount, 1), *both) for amount in (1000, 1001)] == ["sign", "refuse"]


def test_both_sums_count():
    both = limit(POL), limit(EVM_NATIVE, "1000")
    spent = {POL: Spend(60, 60), EVM_NATIVE: Spend(960, 960)}

    assert [decision(pays(amount), *both, spend=spent) for amount in (40, 41)] == ["sign", "refuse"]
    spent = {POL: Spend(60, 60), EVM_NATIVE: Spend(900, 900)}
    assert [decision(pays(amount), *both, spend=spent) for amount in (40, 41)] == ["sign", "refuse"]


def test_a_limit_on_one_chain_covers_no_other_chain():
    assert [decision(pays(1, chain), limit(POL)) for chain in (137, 1)] == ["sign", "queue"]
    assert [decision(pays(1, 1), limit(POL), uncovered=outcome) for outcome in ("allow", "refuse")] == [
        "sign",
        "refuse",
    ]


def test_a_threshold_may_be_on_one_chain():
    threshold = rule("auto-approve-threshold", {"threshold": "5", "asset": POL})

    assert [decision(pays(amount), threshold) for amount in (5, 6)] == ["sign", "queue"]


def test_the_sentence_has_the_coin_of_the_chain():
    units = Units({1: Unit("ETH", 18, "wei"), 137: Unit("POL", 18, "wei")})

    (result,) = judge(rules(limit(POL, str(10**18))), pays(2 * 10**18), facts(units=units)).results

    assert result.reason == (
        "2 POL now and 0 POL in the last 24 hours would exceed the limit of 1 POL per day "
        "(the hour at the edge of the window counts in full)"
    )


def test_an_alert_names_the_coin_of_the_chain():
    verdict = judge(rules(limit(POL)), pays(80), facts())

    assert verdict.alerts == (Alert("day", POL, 80, 100, 80),)


@pytest.mark.parametrize("asset", ["evm:0:native", "evm:01:native", "evm:1:Native", "evm::native", "solana:rent"])
def test_an_asset_that_is_no_coin_of_a_chain_is_refused(asset):
    with pytest.raises(InvalidPolicy, match="is none of evm:native, evm:<chainId>:native"):
        rules(limit(asset))


def test_a_limit_on_one_chain_beside_one_on_all_tightens():
    old = rules(limit(EVM_NATIVE))

    assert widening(old, rules(limit(EVM_NATIVE), limit(POL))) is None
    assert widening(rules(limit(EVM_NATIVE), limit(POL)), rules(limit(EVM_NATIVE), limit(POL, "99"))) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Would cover the coins of the other chains.
        ([limit(POL)], [limit(POL), limit(EVM_NATIVE)]),
        ([limit(POL)], [limit(POL), limit("evm:1:native")]),
        # The other chains would be without a limit.
        ([limit(EVM_NATIVE)], [limit(POL)]),
        ([limit(EVM_NATIVE), limit(POL)], [limit(EVM_NATIVE), limit(POL, "101")]),
    ],
)
def test_a_set_that_covers_more_or_limits_less_loosens(old, new):
    assert widening(rules(*old), rules(*new)) is not None


MINT = "solana:" + "1" * 31 + "2"


def with_rent(most=None, **more):
    config = {"maxPerDay": "100", "asset": "solana:native"} | more
    return rule("spending-limit", config if most is None else config | {"maxRentPerDay": most})


def payment(amount, tokens=1):
    rent = Effect("fee", "solana:native", amount, "us", "them", label="rent")
    return Subject("solana", "solana", 101, None, "them", (Effect("transfer", MINT, tokens, "us", "them"), rent))


def test_rent_is_asked_about_unless_a_rule_allows_it():
    rules_of_token = [with_rent(most, asset=MINT) for most in (None, "20")]

    assert [decision(payment(20), given) for given in rules_of_token] == ["queue", "sign"]
    assert decision(payment(21), rules_of_token[1]) == "refuse"
    (result,) = judge(rules(rules_of_token[0]), payment(20), facts()).results[1:]
    assert result.reason.startswith("no rule covers rent of 20 lamports for a new token account of them; ")


def test_rent_of_the_day_counts_and_of_the_week_does_not():
    allows = with_rent("20", asset=MINT)

    assert decision(payment(5), allows, spend={"solana:rent": Spend(15, 90)}) == "sign"
    assert decision(payment(6), allows, spend={"solana:rent": Spend(15, 15)}) == "refuse"


def test_rent_that_is_allowed_leaves_the_other_limits_as_they_are():
    allows = with_rent("50", asset=MINT)

    assert decision(payment(20, tokens=101), allows) == "refuse"
    assert decision(payment(20), allows, with_rent(maxPerDay="19")) == "refuse"
    # Lamports that are no rent are covered by nothing.
    lamports = Effect("transfer", "solana:native", 1, "us", "x")
    assert decision(Subject("solana", "solana", 101, None, "x", (lamports,)), allows) == "queue"


def test_an_alert_is_raised_for_rent():
    verdict = judge(rules(with_rent("20", asset=MINT)), payment(16), facts())

    assert verdict.alerts == (Alert("day", "solana:rent", 16, 20, 80),)


@pytest.mark.parametrize("asset", [EVM_NATIVE, POL, "evm:1:0x" + "7a" * 20, "bitcoin"])
def test_a_limit_on_rent_stands_in_rules_on_solana_alone(asset):
    with pytest.raises(InvalidPolicy, match="`maxRentPerDay` is for rules on Solana"):
        rules(with_rent("1", asset=asset))


def test_rent_may_be_allowed_less_and_not_more():
    bare, some = rules(with_rent(asset=MINT)), rules(with_rent("20", asset=MINT))

    assert widening(some, rules(with_rent("19", asset=MINT))) is None
    assert widening(rules(with_rent()), rules(with_rent("20"))) is None
    for old, new in ((bare, some), (some, bare), (some, rules(with_rent("21", asset=MINT)))):
        assert widening(old, new) is not None


_amounts = st.dictionaries(
    st.sampled_from((POL, "evm:1:native", "solana:rent", "evm:1:0xtoken")), st.integers(1, 99), max_size=4
)


@given(_amounts, st.dictionaries(st.sampled_from((EVM_NATIVE, "solana:native")), st.integers(1, 99)))
def test_an_amount_that_is_kept_once_counts_under_both_names(parts, beside):
    amounts = dict(parts)
    for part, amount in parts.items():
        whole = {"evm": EVM_NATIVE, "solana": "solana:native"}[part.split(":")[0]]
        if "token" not in part:
            amounts[whole] = amounts.get(whole, 0) + amount
    for whole, amount in beside.items():
        amounts[whole] = amounts.get(whole, 0) + amount

    rows = subtract_parts(amounts)

    assert sum(rows.values()) == sum(parts.values()) + sum(beside.values())
    assert add_parts((asset, amount, amount) for asset, amount in rows.items()) == {
        asset: (amount, amount) for asset, amount in amounts.items()
    }


def test_the_ledger_keeps_a_part_alone_and_counts_it_in_the_whole_by_day_and_by_week():
    assert subtract_parts({POL: 5, EVM_NATIVE: 5}) == {POL: 5}
    assert subtract_parts({POL: 5}) == {POL: 5}
    assert subtract_parts({POL: 5, EVM_NATIVE: 7}) == {POL: 5, EVM_NATIVE: 2}
    found = add_parts([(POL, 1, 10), ("evm:10:native", 2, 20), (EVM_NATIVE, 4, 40)])
    assert found == {POL: (1, 10), "evm:10:native": (2, 20), EVM_NATIVE: (7, 70)}


def test_an_asset_of_no_family_is_part_of_nothing():
    assert (names("usd"), names("tron:1:native")) == (("usd",), ("tron:1:native",))
    assert names(POL) == (POL, EVM_NATIVE)


def test_an_effect_of_no_family_counts_as_it_is():
    paid, fee = (Effect(kind, "tron:1:native", 5, None, to) for kind, to in (("transfer", ALICE), ("fee", None)))

    assert moves(evm(paid, fee)) == {"tron:1:native": 5}
