"""At the edge: the largest amount, the last hour, the second name of a chain, and the exact limit of every window."""

from datetime import UTC, datetime

import pytest

from custody.chains.message_reading import read
from custody.chains.types import Effect, Subject
from custody.chains.units import SOLANA_RENT
from custody.kit.shapes import MAX_UINT256
from custody.policies.addresses import parse_addresses
from custody.policies.assets import parse_amount, parse_asset, parse_optional_asset, say_amount, unit_of
from custody.policies.fingerprint import canonical_set, policy_hash
from custody.policies.judge import judge
from custody.policies.moved import charge, gift, moves
from custody.policies.parts import names
from custody.policies.types import InvalidPolicy, Room
from custody.policies.user_wallets import VARIABLE, default_policies
from tests.rules.policies.makers import ALICE, BOB, NOON, TOKEN, evm, facts, native, rule, rules, token_call, typed_data

REGTEST = "bip122:0f9188f13cb7b2c71f2a335e3a4fc328"
GENESIS = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"
SOMEBODY = "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM"


def decision(set_, order, **known):
    return judge(set_, order, facts(**known)).decision


def limits(**config):
    return rules(rule("spending-limit", config))


@pytest.mark.parametrize(
    ("config", "spent", "most"),
    [
        ({"maxPerTransaction": "10"}, {}, 10),
        ({"maxPerDay": "10"}, {"day": 4}, 6),
        ({"maxPerWeek": "10"}, {"week": 4}, 6),
        ({"maxPerDay": "10", "maxPerWeek": "12"}, {"day": 4, "week": 7}, 5),
        ({"maxPerDay": "10", "maxPerWeek": "99"}, {"day": 4, "week": 7}, 6),
        ({"maxPerTransaction": "3", "maxPerDay": "10", "maxPerWeek": "99"}, {}, 3),
    ],
)
@pytest.mark.parametrize(("asset", "order"), [("evm:native", native), (TOKEN, token_call)])
def test_a_limit_is_reached_and_not_passed(config, spent, most, asset, order):
    known = {"asset": asset, **spent}

    assert decision(limits(asset=asset, **config), order(most), **known) == "sign"
    assert decision(limits(asset=asset, **config), order(most + 1), **known) == "refuse"


def test_an_order_that_moves_nothing_of_an_asset_passes_its_limit_though_it_is_used_up():
    assert decision(limits(asset=TOKEN, maxPerDay="10"), native(0), asset=TOKEN, day=11) == "sign"
    assert decision(limits(asset=TOKEN, maxPerDay="10"), token_call(1), asset=TOKEN, day=11) == "refuse"


@pytest.mark.parametrize("config", [{"maxPerDay": "10"}, {"maxPerWeek": "10"}])
@pytest.mark.parametrize(("floor", "amount", "wanted"), [(6, 1, "sign"), (7, 1, "refuse"), (3, 7, "refuse")])
def test_a_slot_that_is_taken_over_counts_against_a_limit_at_its_larger_amount(config, floor, amount, wanted):
    """The ledger goes on counting the larger one, so a limit must as well."""
    for asset, order in (("evm:native", native), (TOKEN, token_call)):
        known = {"asset": asset, "day": 4, "floor": {asset: floor, "another": 99}}
        assert decision(limits(asset=asset, **config), order(amount), **known) == wanted


UNCOUNTED = (
    Effect("fee", "evm:native", 9, BOB),
    Effect("unread", None, 0, BOB),
    Effect("transfer", TOKEN, 1, BOB, ALICE, nft=True),
    Effect("approval", TOKEN, 2**128, BOB, spender=ALICE),
    Effect("transfer", None, 8, BOB, ALICE),
)


@pytest.mark.parametrize("first", range(len(UNCOUNTED)))
def test_an_effect_that_no_sum_counts_hides_none_behind_it(first):
    order = evm(UNCOUNTED[first], Effect("transfer", TOKEN, 5, BOB, ALICE), Effect("transfer", TOKEN, 6, BOB, ALICE))

    assert moves(order) == {TOKEN: 11}


@pytest.mark.parametrize(("chain", "counted"), [(1, {"evm:native", "evm:1:native"}), (None, {"evm:native"})])
def test_a_coin_counts_for_all_chains_and_for_the_one_that_is_named(chain, counted):
    order = Subject("evm", "typed_data", chain, None, ALICE, (Effect("transfer", "evm:native", 5, BOB, ALICE),))

    assert moves(order) == dict.fromkeys(counted, 5)


@pytest.mark.parametrize(
    ("effect", "given_away", "counted"),
    [
        (Effect("fee", "solana:native", 5, "us", "them"), True, {"solana:native": 5, SOLANA_RENT: 5}),
        (Effect("fee", "solana:native", 5, "us", "us"), False, {"solana:native": 5, SOLANA_RENT: 5}),
        (Effect("fee", "solana:native", 5, "us"), False, {}),
        (Effect("fee", "solana:mint", 5, "us", "them"), True, {"solana:mint": 5}),
        (Effect("transfer", "solana:native", 5, "us", "them"), False, {"solana:native": 5}),
        (Effect("fee", "bitcoin", 5, "us"), False, {"bitcoin": 5}),
    ],
)
def test_a_fee_counts_where_it_lies_in_an_account_and_is_a_gift_in_anothers(effect, given_away, counted):
    assert gift(effect) is given_away
    assert moves(Subject("solana", "solana", 101, None, "them", (effect,))) == counted


def test_an_order_is_charged_at_the_larger_of_itself_and_its_slot():
    assert charge({"a": 5, "b": 6}, {}) == {"a": 5, "b": 6}
    assert charge({"a": 5, "b": 6}, {"a": 7, "b": 1, "c": 2, "d": 0}) == {"a": 7, "b": 6, "c": 2}


@pytest.mark.parametrize("asset", [None, "evm:native"])
def test_a_threshold_is_reached_and_not_passed_whatever_was_spent(asset):
    set_ = rules(rule("auto-approve-threshold", {"threshold": "10", "asset": asset}))

    assert decision(set_, native(10), day=99) == "sign"
    assert decision(set_, native(11)) == "queue"
    assert decision(set_, native(11), approving=True) == "sign"


def test_the_largest_amount_is_one_and_the_next_is_none():
    assert parse_amount(str(MAX_UINT256), "above") == MAX_UINT256
    with pytest.raises(InvalidPolicy, match="`above` must be at most"):
        parse_amount(str(MAX_UINT256 + 1), "above")


def test_a_rate_is_reached_and_not_passed():
    for field, counted in (("maxTxPerHour", "orders_last_hour"), ("maxTxPerDay", "orders_last_day")):
        set_ = rules(rule("rate-limit", {field: 3}))
        assert decision(set_, native(1), **{counted: 2}) == "sign"
        assert decision(set_, native(1), **{counted: 3}) == "refuse"
        assert decision(set_, native(1), **{counted: 4}) == "refuse"
        # And no order of the other window counts here.
        assert decision(set_, native(1), orders_last_hour=9, orders_last_day=9) == "refuse"
    assert decision(rules(rule("rate-limit", {"maxTxPerHour": 3})), native(1), orders_last_day=99) == "sign"


def test_a_window_whose_orders_are_not_known_has_room_when_it_is_over():
    hour, day = (rules(rule("rate-limit", {field: 1})) for field in ("maxTxPerHour", "maxTxPerDay"))

    assert judge(hour, native(1), facts(orders_last_hour=1)).room == Room(3_660, 1)
    assert judge(day, native(1), facts(orders_last_day=1)).room == Room(90_000, 1)


def test_an_order_that_leaves_its_window_this_moment_makes_room_in_a_second():
    start = int(NOON.timestamp()) - 3_660
    set_ = rules(rule("rate-limit", {"maxTxPerHour": 1}))

    for age, seconds in ((-2, 2), (-1, 1), (0, 1), (5, 1)):
        counted = facts(orders_last_hour=1, minutes=[(start - age, 1)])
        assert judge(set_, native(1), counted).room == Room(seconds, 1)


@pytest.mark.parametrize(
    ("spans", "wanted"),
    [
        ([{"start": 0, "end": 1}], {0}),
        ([{"start": 23, "end": 24}], {23}),
        ([{"start": 23, "end": 1}], {23, 0}),
        ([{"start": 1, "end": 2}, {"start": 22, "end": 23}], {1, 22}),
        ([{"start": 0, "end": 24}], set(range(24))),
    ],
)
def test_exactly_the_hours_of_the_spans_are_open(spans, wanted):
    set_ = rules(rule("time-window", {"allowedHours": spans}))

    # On every day of a week.
    for day in range(1, 8):
        moments = {hour: datetime(2025, 6, day, hour, 59, tzinfo=UTC) for hour in range(24)}
        assert {hour for hour, now in moments.items() if decision(set_, native(1), now=now) == "sign"} == wanted


@pytest.mark.parametrize("days", [[0], [6], [1, 3], list(range(7))])
def test_exactly_the_days_that_are_listed_are_open(days):
    set_ = rules(rule("time-window", {"allowedDays": days}))

    # The first of June 2025 is a Sunday.
    moments = {day: datetime(2025, 6, 1 + day, 12, tzinfo=UTC) for day in range(7)}
    assert [day for day, now in moments.items() if decision(set_, native(1), now=now) == "sign"] == days


def test_a_refusal_outside_a_window_says_the_day_and_the_hour_there():
    set_ = rules(rule("time-window", {"allowedDays": [0], "timezone": "Asia/Tokyo"}))

    for day, name in enumerate(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"), start=1):
        result = judge(set_, native(1), facts(now=datetime(2025, 6, 1 + day, 0, 5, tzinfo=UTC))).results[0]
        assert result.reason == f"{name} 09:05 (Asia/Tokyo) is not on an allowed day"
    sunday = judge(set_, native(1), facts(now=datetime(2025, 6, 1, 0, 5, tzinfo=UTC))).results[0]
    assert sunday.reason == "Sunday 09:05 (Asia/Tokyo) is within the window"


@pytest.mark.parametrize("listed", ["bitcoin:regtest", REGTEST])
@pytest.mark.parametrize("named", ["bitcoin:regtest", REGTEST])
def test_both_names_of_a_bitcoin_network_are_one_chain(listed, named):
    set_ = rules(rule("allowed-chains", {"chains": [listed]}))

    assert decision(set_, Subject("bitcoin", "bitcoin", None, named, "bcrt1q", ())) == "sign"
    assert decision(set_, Subject("bitcoin", "bitcoin", None, "bitcoin:mainnet", "bc1q", ())) == "refuse"
    assert decision(set_, Subject("bitcoin", "bitcoin", None, None, "bc1q", ())) == "refuse"


def test_a_document_without_a_chain_is_on_no_list_whatever_else_it_names():
    set_ = rules(rule("allowed-chains", {"chains": [REGTEST]}))

    assert decision(set_, Subject("evm", "typed_data", None, REGTEST, ALICE, ())) == "refuse"


def test_a_message_is_for_a_listed_chain_by_either_name_and_without_one_says_what_to_send():
    set_ = rules(rule("allowed-chains", {"chains": [1, GENESIS]}))
    message = read("evm", "hello", None)

    def result(chain, name, said=message):
        (first, *_) = judge(set_, Subject("evm", "evm_message", chain, name, ALICE, (), message=said), facts()).results
        return first

    assert result(1, None).passed
    assert result(None, GENESIS).passed
    assert not result(2, None).passed
    assert (result(None, None).passed, "send `chainId`" in result(None, None).reason) == (False, True)
    assert result(None, None, None).reason == "chain None is not allowed"


def test_a_chain_of_one_family_allows_none_of_another():
    solana = Subject("solana", "solana", 101, GENESIS, SOMEBODY, ())

    assert decision(rules(rule("allowed-chains", {"chains": [GENESIS]})), solana) == "sign"
    assert decision(rules(rule("allowed-chains", {"chains": ["eip155:101"]})), solana) == "refuse"
    assert decision(rules(rule("allowed-chains", {"chains": [GENESIS]})), native(1)) == "refuse"
    assert (
        decision(rules(rule("allowed-chains", {"chains": ["bitcoin:regtest"]})), typed_data(chain_id=None)) == "refuse"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, 8453], [1]),
        (["eip155:1", "eip155:8453"], ["eip155:1"]),
        ([1], ["eip155:1"]),
        ([1, GENESIS], [1]),
        ([GENESIS, "bitcoin:regtest"], ["bitcoin:regtest"]),
        ([1, GENESIS, "bitcoin:regtest"], ["eip155:1", GENESIS]),
    ],
)
def test_fewer_chains_of_any_kind_tighten_and_one_more_of_any_kind_loosens(old, new):
    before, after = (rules(rule("allowed-chains", {"chains": listed}))[0].terms for listed in (old, new))

    assert after.tightens(before)
    assert after.tightens(after)
    assert not before.tightens(after)


def test_a_lower_threshold_of_another_asset_is_no_tightening():
    old, same, other = (
        rules(rule("auto-approve-threshold", {"threshold": amount, "asset": asset}))[0].terms
        for amount, asset in (("5", TOKEN), ("5", TOKEN), ("4", "evm:native"))
    )

    assert same.tightens(old)
    assert not other.tightens(old)


@pytest.mark.parametrize("of", [{}, {"asset": TOKEN}])
def test_an_order_that_moves_nothing_is_below_every_amount(of):
    set_ = rules(rule("auto-approve-threshold", {"threshold": "0", **of}))
    assert [result.passed for result in judge(set_, native(0), facts()).results[:1]] == [True]

    people = [{"userId": "aaaaaaaa-0000-4000-8000-000000000000", "keys": ["0a" * 32]}]
    set_ = rules(rule("approval-quorum", {"threshold": 1, "approvers": people, "above": "0", **of}))
    assert [result.passed for result in judge(set_, native(0), facts()).results[:1]] == [True]


@pytest.mark.parametrize("asset", ["evm:native", "solana:native", "bitcoin", "evm:8453:native"])
def test_the_coin_of_a_family_or_a_chain_is_an_asset(asset):
    assert parse_asset(asset) == parse_optional_asset(asset) == asset
    assert parse_optional_asset(None) is None


@pytest.mark.parametrize(
    ("asset", "both"),
    [
        ("evm:8453:native", ("evm:8453:native", "evm:native")),
        (SOLANA_RENT, (SOLANA_RENT, "solana:native")),
        ("solana:native", ("solana:native",)),
        (TOKEN, (TOKEN,)),
    ],
)
def test_a_part_counts_under_both_names(asset, both):
    assert names(asset) == both


def test_rent_is_told_in_the_coin_of_its_chain():
    known = facts().units
    coins = type(known)(coins={101: unit_of("bitcoin", known, None)}, tokens={})

    assert unit_of(SOLANA_RENT, coins, 101) == coins.coins[101]
    assert unit_of(SOLANA_RENT, coins, None) is None
    assert say_amount(5, SOLANA_RENT) == "5 lamports"


def test_each_address_is_of_one_family_in_its_one_spelling():
    bitcoin = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"

    found = parse_addresses(["0x" + "A1" * 20, ALICE, SOMEBODY, bitcoin.upper()])

    assert found == {"evm": {ALICE}, "solana": {SOMEBODY}, "bitcoin": {bitcoin}}
    assert parse_addresses([]) == {"evm": set(), "solana": set(), "bitcoin": set()}
    with pytest.raises(InvalidPolicy, match=r"^'x{128}' is not an EVM, Solana or Bitcoin address"):
        parse_addresses([ALICE, "x" * 129])


def test_the_hash_of_a_set_is_over_its_rules_in_order():
    set_ = rules(rule("rate-limit", {"maxTxPerDay": 5}, id="b"), rule("spending-limit", {"maxPerTx": "1"}, id="a"))

    assert canonical_set(set_) == (
        b'[{"config":{"maxTxPerDay":5},"enabled":true,"id":"b","type":"rate-limit"},'
        b'{"config":{"maxPerTx":"1"},"enabled":true,"id":"a","type":"spending-limit"}]'
    )
    assert policy_hash(()).hex() == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    assert policy_hash(set_) != policy_hash(set_[::-1])


def test_a_persons_wallet_begins_with_the_rules_of_the_operators_file(tmp_path):
    file = tmp_path / "rules.json"
    file.write_text('[{"type": "spending-limit", "enabled": true, "config": {"maxPerDay": "7"}}]')

    (built_in,) = default_policies({})
    assert (built_in.type, built_in.config.max_tx_per_hour, built_in.config.max_tx_per_day) == ("rate-limit", 60, 500)
    assert default_policies({VARIABLE: "  "}) == (built_in,)
    (own,) = default_policies({VARIABLE: f" {file} "})
    assert (own.type, own.config.max_per_day) == ("spending-limit", "7")


@pytest.mark.parametrize(
    "content", ["", "{}", '[{"type": "nothing"}]', '[{"type": "spending-limit", "enabled": true, "config": {}}]']
)
def test_a_bad_file_of_rules_is_named_by_its_variable(tmp_path, content):
    file = tmp_path / "rules.json"
    file.write_text(content)

    with pytest.raises(ValueError, match=VARIABLE):
        default_policies({VARIABLE: str(file)})
    with pytest.raises(ValueError, match=VARIABLE):
        default_policies({VARIABLE: str(tmp_path / "missing.json")})
