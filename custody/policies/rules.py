"""Read a policy set strictly into the rules the judge takes.

`parse` is for sets that callers send: it counts rules, bytes and values before it reads any of them. `read` is for
sets that passed it once. Parsing depends on nothing but the set, so the parsed rules may be kept beside its version.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from custody.chains.evm.address import BadAddress
from custody.policies.kind import Config, Covers, Rule, Terms
from custody.policies.kinds import KINDS, PolicyRule
from custody.policies.types import InvalidPolicy

MAX_RULES: Final = 50
MAX_BYTES: Final = 64 * 1024
# Fields and list elements of all configs together. An address costs microseconds, and the signer does nothing else
# meanwhile: with so many at most a set is read in about 5 ms.
MAX_VALUES: Final = 1_000
_AROUND: Final = len('{"config":,"enabled":false,"id":"","type":""},')
_NEW_ID: Final = 36
# Where a value stands that is wrong, as msgspec spells it: `$[1].config.asset`, `$.policies[0].type`.
_PLACE = re.compile(
    r"(?P<problem>.*) - at `\$[.a-zA-Z]{0,64}\[(?P<index>[0-9]+)\]\.(?P<field>(?:config[.\[]?|type(?=`)).*)`\Z"
)
_TOLD: Final = 128


class ParsedRule(msgspec.Struct, frozen=True):
    """One rule of a set: `config` is what is stored and sealed, `terms` is what the judge reads.

    `by_agent` says that the agent's own token set the rule; nothing is judged by it.
    """

    id: str
    type: str
    enabled: bool
    config: str
    terms: Terms
    hard: bool
    covers: Covers
    by_agent: bool = False


def parse(rules: Sequence[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read a set that a caller sent, or raise InvalidPolicy naming the rule and what to change."""
    check_size(rules)
    return read(rules, new_id)


def check_size(rules: Sequence[PolicyRule]) -> None:
    """Raise InvalidPolicy for a set that is too large, without reading any of its rules."""
    if len(rules) > MAX_RULES:
        raise InvalidPolicy(f"A policy set has at most {MAX_RULES} rules; this one has {len(rules)}.")
    configs = [msgspec.json.encode(rule.config) for rule in rules]
    names = sum(len(rule.id or "") or _NEW_ID for rule in rules) + sum(len(rule.type) for rule in rules)
    if sum(map(len, configs)) + names + _AROUND * len(rules) > MAX_BYTES:
        raise InvalidPolicy(f"A policy set has at most {MAX_BYTES // 1024} KiB; make its lists shorter.")
    # Every field or element but the first of its object or list follows a comma.
    if (values := sum(config.count(b",") + 1 for config in configs)) > MAX_VALUES:
        raise InvalidPolicy(
            f"A policy set has at most {MAX_VALUES:,} values, such as addresses and selectors; this one has {values:,}."
        )


def read(rules: Sequence[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read a set whose size was checked when it was sent."""
    parsed = tuple(_read(position, rule, new_id) for position, rule in enumerate(rules, start=1))
    seen: set[str] = set()
    for rule in parsed:
        if rule.id in seen:
            raise InvalidPolicy(f"Two rules have the id {rule.id!r}; give each its own, or omit it.")
        seen.add(rule.id)
    return parsed


def canonical(config: Config) -> str:
    """The one stored spelling of a config: sorted keys, no spaces, every value that was given and no other."""
    return msgspec.json.encode(config, order="sorted").decode()


def stored(rule_id: str, kind: str, enabled: bool, config: str) -> PolicyRule:
    """A rule from its row, or InvalidPolicy for one that this version does not know."""
    try:
        row = {"id": rule_id, "type": kind, "enabled": enabled, "config": msgspec.json.decode(config)}
        rule: PolicyRule = msgspec.convert(row, PolicyRule)
    except (msgspec.ValidationError, msgspec.DecodeError) as problem:
        raise invalid_rule(problem) or InvalidPolicy(f"A stored rule cannot be read: {problem}.") from None
    return rule


def wire(rule: ParsedRule) -> PolicyRule:
    """The rule as callers send and receive it."""
    sent = stored(rule.id, rule.type, rule.enabled, rule.config)
    return msgspec.structs.replace(sent, source="agent") if rule.by_agent else sent


def invalid_rule(problem: Exception, says: str | None = None) -> InvalidPolicy | None:
    """The refusal of a rule whose type or config does not decode; None if something else does not.

    `says` is what a caller is told of the value.
    """
    if not (found := _PLACE.match(str(problem))):
        return None
    position, field, said = int(found["index"]) + 1, found["field"], found["problem"]
    if field == "type" and said.startswith("Invalid value "):
        kind = said.removeprefix("Invalid value ")[:_TOLD]
        message = f"Rule {position} has the type {kind}; the supported types are {', '.join(KINDS)}."
    elif field == "type" or (field == "config" and said.startswith("Expected")):
        return None
    else:
        message = f"Rule {position}: {_named(field, said)[:_TOLD]} {says or 'cannot be read'}."
    return InvalidPolicy(message, position=position)


def _named(field: str, said: str) -> str:
    """The field, or the one in it that is missing or not known."""
    inner = re.search(r"field `(.*)`\Z", said)
    return f"{field}.{inner[1]}" if inner else field


def _read(position: int, rule: Rule, new_id: Callable[[], str]) -> ParsedRule:
    try:
        terms = rule.config.terms()
    except (InvalidPolicy, BadAddress) as problem:
        message = f"Rule {position} ({rule.type}): {str(problem).rstrip('.')}."
        raise InvalidPolicy(message, position=position) from problem
    return ParsedRule(
        rule.id or new_id(), rule.type, rule.enabled, canonical(rule.config), terms, rule.hard, terms.covers()
    )
