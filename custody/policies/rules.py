"""Read a policy set strictly into the rules the judge takes. Spec 1/2.4, decisions 3.

Parsing depends on nothing but the set, so whoever reads a set often may keep the parsed rules beside its version.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from custody.chains.evm.address import BadAddress
from custody.policies.assets import NATIVES
from custody.policies.kinds import KINDS, Kind, Terms
from custody.policies.kinds.auto_approve_threshold import AutoApproveThreshold
from custody.policies.kinds.spending_limit import SpendingLimit
from custody.policies.types import InvalidPolicy, PolicyRule

MAX_RULES: Final = 50
MAX_BYTES: Final = 64 * 1024


class ParsedRule(msgspec.Struct, frozen=True):
    """One rule of a set: `config` is what is stored and sealed, `terms` is what the judge reads.

    `covers` are the assets that a limit or threshold can judge, empty for every other type.
    """

    id: str
    type: str
    enabled: bool
    config: str
    terms: Terms
    kind: Kind
    covers: frozenset[str]


def parse(rules: Iterable[PolicyRule], new_id: Callable[[], str]) -> tuple[ParsedRule, ...]:
    """Read a set, or raise InvalidPolicy naming the rule and what to change."""
    given = tuple(rules)
    if len(given) > MAX_RULES:
        raise InvalidPolicy(f"A policy set has at most {MAX_RULES} rules; this one has {len(given)}.")
    parsed = tuple(_read(position, rule, new_id) for position, rule in enumerate(given, start=1))
    seen: set[str] = set()
    for rule in parsed:
        if rule.id in seen:
            raise InvalidPolicy(f"Two rules have the id {rule.id!r}; give each its own, or omit it.")
        seen.add(rule.id)
    if sum(map(_stored_bytes, parsed)) > MAX_BYTES:
        raise InvalidPolicy(f"A policy set has at most {MAX_BYTES // 1024} KiB; make its lists shorter.")
    return parsed


def canonical(config: dict[str, Any]) -> str:
    """The one stored spelling of a config: sorted keys, no spaces, every value as it was given."""
    return msgspec.json.encode(config, order="sorted").decode()


def wire(rule: ParsedRule) -> PolicyRule:
    """The rule as callers receive it."""
    return PolicyRule(id=rule.id, type=rule.type, enabled=rule.enabled, config=msgspec.json.decode(rule.config))


def _read(position: int, rule: PolicyRule, new_id: Callable[[], str]) -> ParsedRule:
    kind = KINDS.get(rule.type)
    if kind is None:
        raise InvalidPolicy(f"Rule {position} has the type {rule.type!r}; the supported types are {', '.join(KINDS)}.")
    try:
        terms = kind.parse(rule.config)
    except (msgspec.ValidationError, InvalidPolicy, BadAddress) as problem:
        message = f"Rule {position} ({rule.type}): {_plain(problem)}."
        raise InvalidPolicy(message, position=position) from problem
    return ParsedRule(rule.id or new_id(), rule.type, rule.enabled, canonical(rule.config), terms, kind, _covers(terms))


def _covers(terms: Terms) -> frozenset[str]:
    if not isinstance(terms, SpendingLimit | AutoApproveThreshold):
        return frozenset()
    return NATIVES if terms.asset is None else frozenset((terms.asset,))


def _plain(problem: Exception) -> str:
    return str(problem).rstrip(".").replace("`$.", "`config.").replace("`$`", "`config`")


def _stored_bytes(rule: ParsedRule) -> int:
    around = len('{"config":,"enabled":false,"id":"","type":""},')
    return len(rule.config.encode()) + len(rule.id) + len(rule.type) + around
