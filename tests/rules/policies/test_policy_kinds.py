"""Answers that every type of rule must give, held for each by the list of types."""

import inspect
import typing
from typing import get_args

import msgspec
import pytest

from custody.policies.fingerprint import canonical_set
from custody.policies.kind import Config, Rule, Terms
from custody.policies.kinds import KINDS, PolicyRule
from custody.policies.rules import invalid_rule
from tests.rules.policies.makers import rule, rules, typed_rules

EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


def config_of(kind: type[Rule]) -> type[Config]:
    found: type[Config] = typing.get_type_hints(kind)["config"]
    return found


def terms_of(kind: type[Rule]) -> type[Terms]:
    found: type[Terms] = typing.get_type_hints(config_of(kind).terms)["return"]
    return found


@EVERY
def test_a_type_checks_and_compares(kind: type[Rule]) -> None:
    terms = terms_of(kind)

    assert terms is not Terms
    assert terms.check is not Terms.check
    assert terms.tightens is not Terms.tightens


@EVERY
def test_a_type_that_keeps_limits_says_so(kind: type[Rule]) -> None:
    assert kind.keeps_limits == (terms_of(kind).limits is not Terms.limits)


@EVERY
def test_a_type_and_each_of_its_fields_is_described(kind: type[Rule]) -> None:
    _, components = msgspec.json.schema_components([config_of(kind)])

    assert inspect.getdoc(kind) != inspect.getdoc(Rule)
    for schema in components.values():
        assert [name for name, field in schema["properties"].items() if not field.get("description")] == []


def test_every_union_member_is_a_type_of_its_own() -> None:
    assert len(KINDS) == len(get_args(PolicyRule))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            "Expected `int` >= 1 - at `$[1].config.maxTxPerDay`",
            "Rule 2: config.maxTxPerDay is wrong.",
        ),
        (
            "Expected `str` - at `$.applyPolicies[0].config.chains[...]`",
            "Rule 1: config.chains[...] is wrong.",
        ),
        (
            "Object contains unknown field `x` - at `$[0].config`",
            "Rule 1: config.x is wrong.",
        ),
        ("Expected `bool`, got `int` - at `$[0].enabled`", None),
        ("Expected `str` - at `$[0].type`", None),
        ("Object missing required field `config` - at `$[0]`", None),
        ("Expected `object`, got `null` - at `$[0].config`", None),
        ("Expected `int` - at `$.other.config`", None),
    ],
)
def test_an_undecodable_rule_is_a_bad_rule_or_a_bad_body(problem: str, message: str | None) -> None:
    found = invalid_rule(ValueError(problem), "is wrong")

    assert (found and found.message) == message


def test_a_field_that_was_not_sent_is_not_stored() -> None:
    given = {"type": "approved-addresses", "enabled": True, "config": {"addresses": []}, "id": "a"}

    assert msgspec.to_builtins(typed_rules(rule("approved-addresses", {"addresses": []}, id="a"))) == [given]


def test_the_fingerprint_is_over_the_fields_as_given_in_one_order() -> None:
    explicit = rules(rule("approved-addresses", {"mode": "whitelist", "addresses": []}, id="a"))
    swapped = rules(rule("approved-addresses", {"addresses": [], "mode": "whitelist"}, id="a"))
    silent = rules(rule("approved-addresses", {"addresses": []}, id="a"))

    assert (
        canonical_set(explicit)
        == canonical_set(swapped)
        == (b'[{"config":{"addresses":[],"mode":"whitelist"},"enabled":true,"id":"a","type":"approved-addresses"}]')
    )
    assert canonical_set(silent) == (
        b'[{"config":{"addresses":[]},"enabled":true,"id":"a","type":"approved-addresses"}]'
    )
