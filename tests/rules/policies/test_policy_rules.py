"""Reading a set: what is refused, what is kept, and what the message says."""

import msgspec
import pytest

from custody.chains.units import SOLANA_RENT
from custody.policies.assets import natives
from custody.policies.kind import Wants
from custody.policies.kinds import KINDS, PolicyRule
from custody.policies.rules import canonical, check_size, invalid_rule, load_rule, parse, read, wire
from custody.policies.types import InvalidPolicy
from tests.rules.policies.makers import TOKEN, rule, rules, typed_rules

LIMIT = {"maxPerDay": "5"}


def test_an_unknown_type_lists_the_supported_ones():
    with pytest.raises(InvalidPolicy) as refused:
        rules(rule("spending-limit", LIMIT), rule("spend-limit", LIMIT))

    assert refused.value.message == (f"Rule 2 has the type 'spend-limit'; the supported types are {', '.join(KINDS)}.")


def test_a_bad_field_is_named_with_its_rule():
    with pytest.raises(InvalidPolicy) as refused:
        rules(rule("rate-limit", {"maxTxPerDay": 0}))

    assert refused.value.message == "Rule 1: config.maxTxPerDay must be a whole number from 1 to 9007199254740992."
    assert refused.value.code == "invalid_policy"


@pytest.mark.parametrize(
    "body",
    [
        b'[{"type":"rate-limit","enabled":"yes","config":{}}]',
        b'[{"type":"rate-limit","enabled":true,"config":null}]',
        b'[{"type":"rate-limit","enabled":true,"config":[]}]',
        b'[{"type":"rate-limit","config":{}}]',
        b'[{"type":5,"enabled":true,"config":{}}]',
        b'[{"type":"rate-limit","enabled":true,"config":{},"note":1}]',
        b'[{"id":"a\\n","type":"rate-limit","enabled":true,"config":{}}]',
        b'[{"id":"","type":"rate-limit","enabled":true,"config":{}}]',
    ],
)
def test_the_wire_form_is_strict(body):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=list[PolicyRule])


def test_ids_are_kept_or_generated_and_unique():
    parsed = rules(rule("spending-limit", LIMIT, id="mine"), rule("spending-limit", LIMIT))

    assert [one.id for one in parsed] == ["mine", "rule-0"]
    with pytest.raises(InvalidPolicy, match="Two rules have the id 'mine'"):
        rules(rule("spending-limit", LIMIT, id="mine"), rule("spending-limit", LIMIT, id="mine"))


def test_a_set_has_at_most_fifty_rules():
    assert len(rules(*[rule("spending-limit", LIMIT)] * 50)) == 50
    with pytest.raises(InvalidPolicy, match="at most 50 rules"):
        rules(*[rule("spending-limit", LIMIT)] * 51)


def test_a_set_has_at_most_64_kib():
    many = [f"0x{number:040x}" for number in range(1500)]
    with pytest.raises(InvalidPolicy, match="at most 64 KiB"):
        rules(rule("approved-addresses", {"addresses": many}))


def test_a_set_has_at_most_a_thousand_values():
    many = [f"0x{number:040x}" for number in range(999)]
    assert len(rules(rule("approved-addresses", {"mode": "whitelist", "addresses": many}))) == 1
    with pytest.raises(
        InvalidPolicy, match="at most 1,000 values, such as addresses and selectors; this one has 1,001"
    ):
        rules(rule("approved-addresses", {"mode": "whitelist", "addresses": [*many, many[0]]}))


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"addresses": ["nobody's"] * 22_000}, "at most 64 KiB"),
        ({"addresses": ["x"] * 1_001}, "at most 1,000 values"),
    ],
)
def test_the_size_of_a_set_is_counted_before_anything_in_it_is_read(config, says):
    """Otherwise what is refused costs the signer's loop as much as its sender likes."""
    with pytest.raises(InvalidPolicy, match=says):
        rules(rule("approved-addresses", config))


def test_a_set_stored_before_there_were_bounds_is_still_read():
    many = [f"0x{number:040x}" for number in range(1_400)]

    assert len(read(typed_rules(rule("approved-addresses", {"addresses": many})), str)) == 1


def test_a_wrong_value_is_repeated_in_part_only():
    with pytest.raises(InvalidPolicy) as refused:
        rules(rule("approved-addresses", {"addresses": ["x" * 60_200]}))

    assert len(refused.value.message) < 300


def test_a_disabled_rule_is_read_as_strictly():
    with pytest.raises(InvalidPolicy, match=r"Rule 1\b"):
        rules(rule("spending-limit", {}, enabled=False))


def test_a_config_is_stored_sorted_and_otherwise_as_given():
    given = {"maxPerTx": "5", "alertPercents": [100, 80], "asset": "evm:native"}

    (typed,) = typed_rules(rule("spending-limit", given, id="a"))
    assert canonical(typed.config) == '{"alertPercents":[100,80],"asset":"evm:native","maxPerTx":"5"}'
    assert wire(rules(rule("spending-limit", given, id="a"))[0]) == typed


def test_reading_what_was_stored_gives_the_same_rules():
    first = rules(
        rule("time-window", {"timezone": "Europe/Berlin", "allowedDays": [3, 1]}), rule("spending-limit", LIMIT)
    )

    assert parse([wire(one) for one in first], lambda: "never") == first


def test_a_rule_that_does_not_decode_is_named_by_its_place():
    problem = msgspec.ValidationError("Expected `str`, got `int` - at `$[1].config.maxPerDay`")
    refusal = invalid_rule(problem)
    assert refusal is not None
    assert (refusal.message, refusal.context) == ("Rule 2: config.maxPerDay cannot be read.", {"position": 2})
    odd = invalid_rule(msgspec.ValidationError("Invalid value 'x' - at `$[0].config.mode`"))
    assert odd is not None
    assert (odd.message, odd.context) == ("Rule 1: config.mode cannot be read.", {"position": 1})


def test_a_set_is_measured_with_its_ids():
    def set_of_size(letters: int) -> list[PolicyRule]:
        filler = rule("approved-addresses", {"addresses": ["x" * 60_200]}, id="x" * letters)
        others = [rule("rate-limit", {"maxTxPerDay": 1}, id=f"{n:0{letters}}") for n in range(10, 59)]
        return typed_rules(filler, *others)

    check_size(set_of_size(2))
    with pytest.raises(InvalidPolicy, match="at most 64 KiB"):
        check_size(set_of_size(36))


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("spend-limit", "{}"),
        ("spending-limit", "no json"),
        ("spending-limit", '{"maxPerDay":5}'),
        ("spending-limit", "[]"),
    ],
)
def test_a_stored_rule_that_cannot_be_read_is_refused(kind, config):
    with pytest.raises(InvalidPolicy):
        load_rule("a", kind, True, config)


def test_a_rule_says_which_figures_a_back_test_must_count():
    (rate, asset, native, rent) = rules(
        rule("rate-limit", {"maxTxPerDay": 1}),
        rule("spending-limit", {"maxPerDay": "5", "asset": TOKEN}),
        rule("spending-limit", {"maxPerDay": "5"}),
        rule("spending-limit", {"maxPerDay": "5", "maxRentPerDay": "7"}),
    )
    assert rate.terms.wants() == Wants(rates=True)
    assert asset.terms.wants() == Wants(spend=frozenset({TOKEN}))
    assert native.terms.wants() == Wants(spend=natives())
    assert rent.terms.wants() == Wants(spend=natives() | {SOLANA_RENT})
