"""Reading a set: what is refused, what is kept, and what the message says."""

import msgspec
import pytest

from custody.policies.rules import canonical, parse, wire
from custody.policies.types import InvalidPolicy, PolicyRule
from tests.rules.policies.makers import rule, rules

LIMIT = {"maxPerDay": "5"}


def test_an_unknown_type_lists_the_supported_ones():
    with pytest.raises(InvalidPolicy) as refused:
        rules(rule("spending-limit", LIMIT), rule("spend-limit", LIMIT))

    assert refused.value.message == (
        "Rule 2 has the type 'spend-limit'; the supported types are spending-limit, approved-addresses, "
        "auto-approve-threshold, time-window, rate-limit, allowed-chains, contract-allowlist."
    )


def test_a_bad_field_is_named_with_its_rule():
    with pytest.raises(InvalidPolicy) as refused:
        rules(rule("rate-limit", {"maxTxPerDay": 0}))

    assert refused.value.message == "Rule 1 (rate-limit): Expected `int` >= 1 - at `config.maxTxPerDay`."
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


def test_a_disabled_rule_is_read_as_strictly():
    with pytest.raises(InvalidPolicy, match=r"Rule 1 \(spending-limit\)"):
        rules(rule("spending-limit", {}, enabled=False))


def test_a_config_is_stored_sorted_and_otherwise_as_given():
    given = {"maxPerTx": "5", "alertPercents": [100, 80], "asset": "evm:native"}

    assert canonical(given) == '{"alertPercents":[100,80],"asset":"evm:native","maxPerTx":"5"}'
    assert wire(rules(rule("spending-limit", given, id="a"))[0]) == rule("spending-limit", given, id="a")


def test_reading_what_was_stored_gives_the_same_rules():
    first = rules(
        rule("time-window", {"timezone": "Europe/Berlin", "allowedDays": [3, 1]}), rule("spending-limit", LIMIT)
    )

    assert parse([wire(one) for one in first], lambda: "never") == first
