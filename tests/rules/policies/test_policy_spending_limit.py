"""spending-limit and auto-approve-threshold: what counts, and what a person is told."""

import pytest

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.chains.units import Unit, Units
from custody.policies.assets import say_amount
from custody.policies.judge import judge
from custody.policies.types import Alert, InvalidPolicy, Spend
from tests.rules.policies.makers import TOKEN, approval_call, facts, native, rent, rule, rules, token_call

COIN = "evm:1:native"


def limit(**config):
    return rules(rule("spending-limit", config))


def test_the_daily_limit_counts_what_was_signed_before_and_says_so():
    verdict = judge(limit(maxPerDay="1000"), native(300), facts(day=800))

    assert verdict.decision == "refuse"
    assert verdict.results[0].reason == (
        "300 wei now and 800 wei in the last 24 hours would exceed the limit of 1000 wei per day "
        "(the hour at the edge of the window counts in full)"
    )


def test_an_order_that_just_fits_is_signed_and_its_fee_does_not_count():
    verdict = judge(limit(maxPerDay="1000"), native(200, fee=10**18), facts(day=800))

    assert verdict.decision == "sign"
    assert verdict.charges == {EVM_NATIVE: 200, COIN: 200}


@pytest.mark.parametrize("name", ["maxPerTransaction", "maxPerTx"])
def test_the_limit_per_transaction_has_an_alias(name):
    assert judge(limit(**{name: "5"}), native(6), facts()).decision == "refuse"
    assert judge(limit(**{name: "5"}), native(5), facts()).decision == "sign"


def test_the_weekly_limit_is_judged_apart_from_the_daily_one():
    assert judge(limit(maxPerDay="50", maxPerWeek="100"), native(10), facts(day=0, week=95)).decision == "refuse"


def test_without_an_asset_each_chain_family_is_limited_in_its_own_coin():
    lamports = Subject("solana", "solana", 101, None, "dest", (Effect("transfer", "solana:native", 11, to="dest"),))

    assert judge(limit(maxPerDay="10"), lamports, facts()).decision == "refuse"
    assert judge(limit(maxPerDay="20"), lamports, facts(day=20)).decision == "sign"


def test_a_bitcoin_order_counts_its_fee():
    effects = (Effect("transfer", "bitcoin", 90, to="bc1"), Effect("fee", "bitcoin", 11))
    order = Subject("bitcoin", "bitcoin", None, None, "bc1", effects)

    assert judge(limit(maxPerTx="100"), order, facts()).decision == "refuse"


@pytest.mark.parametrize("owner", ["them", "us"])
def test_rent_counts_as_spend_for_any_account_owner(owner):
    order = rent(9, owner=owner)

    assert judge((), order, facts()).charges == {"solana:mint": 1, "solana:native": 9, "solana:rent": 9}
    assert judge(limit(maxPerTx="8"), order, facts()).decision == "refuse"
    assert judge(limit(maxPerDay="10"), order, facts(day=2, asset="solana:native")).decision == "refuse"


def test_a_threshold_counts_rent_for_somebody_else():
    threshold = rules(rule("auto-approve-threshold", {"threshold": "8"}))

    assert not judge(threshold, rent(9), facts()).results[0].passed
    assert judge(threshold, rent(8), facts()).results[0].passed


def test_a_token_limit_names_its_token_in_any_case():
    named = limit(maxPerTx="5", asset="evm:1:0x" + "7A" * 20)

    assert judge(named, token_call(6), facts()).decision == "refuse"
    assert judge(named, token_call(5), facts()).decision == "sign"


def test_a_small_approval_is_spend_and_a_revocation_is_not():
    named = limit(maxPerDay="100", asset=TOKEN)

    assert judge(named, approval_call(60), facts(day=50, asset=TOKEN)).decision == "refuse"
    assert judge(named, approval_call(60), facts()).charges == {TOKEN: 60}
    assert judge(named, approval_call(0), facts(day=100, asset=TOKEN)).charges == {}


def test_a_taken_over_nonce_slot_adds_only_what_exceeds_it():
    taken = facts(day=900, floor={EVM_NATIVE: 100, COIN: 100})

    assert judge(limit(maxPerDay="1000"), native(100), taken).decision == "sign"
    assert judge(limit(maxPerDay="1000"), native(101), taken).decision == "refuse"
    assert judge(limit(maxPerDay="1000"), native(40), taken).charges == {EVM_NATIVE: 100, COIN: 100}


def test_an_enormous_transfer_is_refused_not_treated_as_unlimited():
    huge = Effect("transfer", EVM_NATIVE, 2**255, to="0x1", unlimited=True)
    order = Subject("evm", "evm", 1, "eip155:1", "0x1", (huge,))

    assert judge(limit(maxPerTx="5"), order, facts()).decision == "refuse"


def test_each_crossed_share_of_a_limit_alerts_once_and_only_when_signed():
    verdict = judge(limit(maxPerDay="100", maxPerWeek="1000"), native(30), facts(day=70))

    assert verdict.alerts == (Alert("day", EVM_NATIVE, 100, 100, 80), Alert("day", EVM_NATIVE, 100, 100, 100))
    assert judge(limit(maxPerDay="100"), native(5), facts(day=80)).alerts == ()
    assert judge(limit(maxPerDay="100"), native(31), facts(day=70)).alerts == ()


def test_alert_percents_are_configurable_and_a_taken_over_slot_crosses_nothing_again():
    half = limit(maxPerWeek="100", alertPercents=[50])
    taken = facts(week=0, floor={EVM_NATIVE: 55})

    assert [alert.percent for alert in judge(half, native(50), facts()).alerts] == [50]
    assert judge(half, native(60), taken).alerts == ()


@pytest.mark.parametrize("amount", ["", "-1", "1.0", "0x1", "01", " 1", "1\n", str(2**256), 5, True])
def test_an_amount_is_a_plain_decimal_string_that_fits_256_bits(amount):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b.*maxPerDay"):
        limit(maxPerDay=amount)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"asset": "evm:native"},
        {"maxPerTx": "1", "maxPerTransaction": "2"},
        {"maxPerDay": "1", "maxPerMonth": "1"},
        {"maxPerDay": "1", "asset": "evm:8453:0xtoken"},
        {"maxPerDay": "1", "asset": "solana:not-a-mint"},
        {"maxPerDay": "1", "alertPercents": [0]},
        {"maxPerDay": "1", "alertPercents": [101]},
    ],
)
def test_a_limit_that_says_nothing_clear_is_not_accepted(config):
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        limit(**config)


def test_one_limit_under_both_of_its_names_is_one():
    both = limit(maxPerTx="5", maxPerTransaction="5")

    assert [judge(both, native(amount), facts()).decision for amount in (5, 6)] == ["sign", "refuse"]


def test_a_threshold_queues_above_and_signs_at_its_value():
    soft = rules(rule("auto-approve-threshold", {"threshold": "10"}))

    assert judge(soft, native(10), facts()).decision == "sign"
    assert judge(soft, native(11), facts()).decision == "queue"


def test_an_approved_order_passes_the_threshold_but_not_a_limit():
    both = rules(rule("auto-approve-threshold", {"threshold": "10"}), rule("spending-limit", {"maxPerTx": "20"}))

    passed = judge(both, native(20), facts(approving=True))

    assert passed.decision == "sign"
    assert passed.results[0].passed
    assert passed.results[0].reason.endswith("a person approved it")
    assert judge(both, native(21), facts(approving=True)).decision == "refuse"


def test_a_token_threshold_says_nothing_about_the_native_asset():
    soft = rules(rule("auto-approve-threshold", {"threshold": "10", "asset": TOKEN}))

    assert judge(soft, token_call(11), facts(spend={TOKEN: Spend(0, 0)})).decision == "queue"
    assert judge(soft, token_call(10), facts()).decision == "sign"


UNITS = Units({1: Unit("ETH", 18, "wei"), 137: Unit("POL", 18, "wei")}, {TOKEN: Unit("USDC", 6)})
ETH = 10**18


def reason_of(set_, order, **changed):
    return judge(set_, order, facts(units=UNITS, **changed)).results[0].reason


def test_a_coin_is_told_with_its_symbol_and_that_chains_count_together():
    assert reason_of(limit(maxPerDay=str(ETH)), native(3 * ETH // 10), day=8 * ETH // 10) == (
        "0.3 ETH now and 0.8 ETH in the last 24 hours would exceed the limit of 1 ETH per day "
        "(the hour at the edge of the window counts in full; the coins of all EVM chains count together)"
    )


def test_a_token_is_told_with_its_symbol_and_decimals_where_the_operator_names_it():
    day = limit(maxPerDay="250000000", asset=TOKEN)

    assert reason_of(day, token_call(80_000_000), day=220_500_000, asset=TOKEN) == (
        "80 USDC now and 220.5 USDC in the last 24 hours would exceed the limit of 250 USDC per day "
        "(the hour at the edge of the window counts in full)"
    )


def test_another_token_is_named_once():
    reason = judge(limit(maxPerDay="5", asset=TOKEN), token_call(8), facts(asset=TOKEN)).results[0].reason

    assert reason == (
        f"8 units of {TOKEN} now and 0 units in the last 24 hours would exceed the limit of 5 units per day "
        "(the hour at the edge of the window counts in full)"
    )


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 ETH"),
        (1, "1 wei"),
        (10**12 - 1, "999999999999 wei"),
        (10**12, "0.000001 ETH"),
        (10**18 + 1, "1.000000000000000001 ETH"),
        (120 * 10**18, "120 ETH"),
    ],
)
def test_an_amount_is_exact(amount, text):
    assert UNITS.coins[1].tell(amount) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0 BTC"), (99, "99 satoshi"), (100, "0.000001 BTC"), (51_000, "0.00051 BTC")]
)
def test_bitcoins_have_one_unit_on_every_network(amount, text):
    assert say_amount(amount, "bitcoin") == text
